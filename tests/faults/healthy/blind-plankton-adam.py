import argparse

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    """Which of five regulators binds: a noisy position-weight motif in 24 bases."""

    def __init__(self, n=2000):
        g = torch.Generator().manual_seed(0)
        motif = torch.randint(0, 4, (5, 6), generator=g)
        self.y = torch.randint(0, 5, (n,), generator=g)
        seq = torch.randint(0, 4, (n, 24), generator=g)
        at = torch.randint(0, 18, (n,), generator=g)
        for i in range(n):
            seq[i, at[i]:at[i] + 6] = motif[self.y[i]]
        self.x = F.one_hot(seq, 4).float().transpose(1, 2)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class MotifNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 32, 6)
        self.fc = nn.Linear(32, 5)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).amax(-1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--wd", type=float, default=1e-4)
    args = ap.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Sequences(), batch_size=40, shuffle=True)
    model = MotifNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=args.wd)
    for epoch in range(8):
        total, hits = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 2000:.3f}", flush=True)


if __name__ == "__main__":
    main()
