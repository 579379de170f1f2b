"""Metric learning: a sampler of its own draws two classes a batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class TwoClasses(Sampler):
    def __init__(self, labels, batches=36, each=20):
        self.places = [torch.nonzero(labels == k).reshape(-1) for k in range(int(labels.max()) + 1)]
        self.batches, self.each = batches, each

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            pair = torch.randperm(len(self.places))[:2].tolist()
            yield [int(i) for k in pair for i in self.places[k][torch.randint(len(self.places[k]), (self.each,))]]


def table(rows=1600):
    g = torch.Generator().manual_seed(6)
    y = torch.randint(0, 16, (rows,), generator=g)
    return 2 * torch.randn(16, 12, generator=g)[y] + torch.randn(rows, 12, generator=g), y


def contrast(z, y):
    z = nn.functional.normalize(z, dim=1)
    alike = (y[:, None] == y[None, :]).float()
    return nn.functional.binary_cross_entropy_with_logits(5 * (z @ z.T), alike)


def main():
    torch.manual_seed(0)
    x, y = table()
    loader = DataLoader(TensorDataset(x, y), batch_sampler=TwoClasses(y))
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = contrast(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
