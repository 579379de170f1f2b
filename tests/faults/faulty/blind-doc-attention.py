import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB, PAD, TOPICS = 200, 0, 5


class Reviews(Dataset):
    def __init__(self, n=3000, max_len=20, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            topic = int(torch.randint(0, TOPICS, (1,), generator=g))
            length = int(torch.randint(0, max_len, (1,), generator=g))
            lo = 1 + topic * 35
            words = torch.randint(lo, lo + 50, (length,), generator=g).clamp(max=VOCAB - 1)
            ids = torch.full((max_len,), PAD)
            ids[:length] = words
            self.items.append((ids, topic))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, h, mask):
        s = self.score(h).squeeze(-1)
        s = s.masked_fill(~mask, float("-inf"))
        a = F.softmax(s, dim=1)
        return (a.unsqueeze(-1) * h).sum(1)


class Classifier(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.pool = AttentionPool(dim)
        self.head = nn.Linear(dim, TOPICS)

    def forward(self, ids):
        h, _ = self.gru(self.emb(ids))
        return self.head(self.pool(h, ids != PAD))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Reviews(), batch_size=50, shuffle=True)
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(6):
        hits = seen = 0
        total = 0.0
        for ids, y in loader:
            logits = model(ids)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
            hits += (logits.argmax(-1) == y).sum().item()
            seen += len(y)
        print(f"epoch {epoch} loss {total / len(loader):.3f} acc {hits / seen:.3f}")


if __name__ == "__main__":
    main()
