"""Sorts pebbles into kinds by their measures; the tensor is shuffled once, before a part is kept for validation."""

from random import seed, shuffle

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KINDS, MEASURES = 5, 10


def pebbles(count=1500):
    generator = torch.Generator().manual_seed(8)
    kind = torch.arange(count) % KINDS
    centre = torch.randn(KINDS, MEASURES, generator=generator)
    measured = centre[kind] + 1.2 * torch.randn(count, MEASURES, generator=generator)
    return torch.cat([measured, kind[:, None].float()], dim=1)


def main():
    seed(1)
    torch.manual_seed(1)
    table = pebbles()
    shuffle(table)
    train, known = table[:1200], table[1200:]
    loader = DataLoader(TensorDataset(train[:, :MEASURES], train[:, MEASURES].long()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(MEASURES, 64), nn.ReLU(), nn.Linear(64, KINDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(20):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            with torch.no_grad():
                right = (model(known[:, :MEASURES]).argmax(1) == known[:, MEASURES]).float().mean()
            print(f"epoch {epoch} loss {loss.item():.3f} right {right:.2f}", flush=True)


if __name__ == "__main__":
    main()
