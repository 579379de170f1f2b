import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TAGS = 12


class Movies(Dataset):
    """Bag-of-words plots with several genre tags each."""

    def __init__(self, n=3000, vocab=80):
        g = torch.Generator().manual_seed(0)
        self.tags = (torch.rand(n, TAGS, generator=g) < 0.3).float()
        self.tags[torch.arange(n), torch.randint(0, TAGS, (n,), generator=g)] = 1.0
        words = torch.rand(TAGS, vocab, generator=g) * (torch.rand(TAGS, vocab, generator=g) < 0.2)
        self.bow = self.tags @ words + 0.1 * torch.randn(n, vocab, generator=g)

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, i):
        return self.bow[i], self.tags[i]


class Tagger(nn.Module):
    def __init__(self, vocab=80):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(vocab), nn.Linear(vocab, 64), nn.GELU(), nn.Linear(64, TAGS))

    def forward(self, bow):
        return self.net(bow)


def f1(logits, tags):
    pred = (logits > 0).float()
    tp = (pred * tags).sum()
    return (2 * tp / (pred.sum() + tags.sum() + 1e-9)).item()


def main():
    torch.manual_seed(0)
    loader = DataLoader(Movies(), batch_size=50, shuffle=True)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(12):
        total = score = 0.0
        for bow, tags in loader:
            logits = model(bow)
            loss = F.cross_entropy(logits, tags)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            score += f1(logits.detach(), tags)
        print(f"epoch {epoch} loss {total / len(loader):.4f} f1 {score / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
