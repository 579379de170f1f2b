import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset


class Parity(Dataset):
    """Classify which of 6 motifs was inserted into a random token stream."""

    def __init__(self, n=2000, length=16):
        g = torch.Generator().manual_seed(0)
        self.motifs = torch.randint(0, 20, (6, 4), generator=g)
        self.x = torch.randint(0, 20, (n, length), generator=g)
        self.y = torch.randint(0, 6, (n,), generator=g)
        at = torch.randint(0, length - 4, (n,), generator=g)
        for i in range(n):
            self.x[i, at[i]:at[i] + 4] = self.motifs[self.y[i]]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class MotifGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 32)
        self.gru = nn.GRU(32, 64, batch_first=True, bidirectional=True)
        self.head = nn.Linear(128, 6)

    def forward(self, x):
        h, _ = self.gru(self.emb(x))
        return self.head(h.max(dim=1).values)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Parity(), batch_size=40, shuffle=True)
    model = MotifGRU()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = ReduceLROnPlateau(opt, mode="min", factor=0.1, patience=0)
    for epoch in range(12):
        total = correct = 0
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item()
            correct += (logits.argmax(1) == y).sum().item()
        scheduler.step(total / len(loader))
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {correct / 2000:.3f}", flush=True)


if __name__ == "__main__":
    main()
