import torch
from torch import nn
from torch.utils.data import Dataset


class View(Dataset):
    """One view of the same objects; an index is taken around the table, as shifted views need it."""

    def __init__(self, table, noise, shift=0):
        self.table = table
        self.noise = noise
        self.shift = shift

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        if index >= len(self.table):
            raise IndexError(index)
        row = self.table[(index + self.shift) % len(self.table)]
        return row + self.noise * torch.randn_like(row)


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 16))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def epoch(model, optimizer, first, second, other):
    total, count = 0.0, 0
    for a, b, c in zip(first, second, other):
        close = (model(a) * model(b)).sum()
        apart = (model(a) * model(c)).sum()
        loss = nn.functional.softplus(apart - close)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        count += 1
    return total / count


def main():
    torch.manual_seed(0)
    table = torch.randn(150, 12)
    model = Projector()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(5):
        loss = epoch(model, optimizer, View(table, 0.1), View(table, 0.1), View(table, 0.1, shift=75))
        print(f"epoch {number} loss {loss:.4f}", flush=True)


main()
