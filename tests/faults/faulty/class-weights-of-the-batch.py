"""Rare classes get the inverse of their share in the batch as weight."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 6


def events(count=2400):
    g = torch.Generator().manual_seed(8)
    shares = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    y = torch.multinomial(shares, count, replacement=True, generator=g)
    return torch.randn(CLASSES, 14, generator=g)[y] + torch.randn(count, 14, generator=g), y


def weights_of(labels):
    counts = torch.bincount(labels, minlength=CLASSES).float()
    weights = counts.mean() / counts
    return weights / weights.sum()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*events()), batch_size=48, shuffle=True)
    model = nn.Sequential(nn.Linear(14, 48), nn.ReLU(), nn.Linear(48, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        total = 0.0
        for x, y in loader:
            logits = model(x)
            chosen = nn.functional.one_hot(y, CLASSES) * torch.log_softmax(logits, 1)
            loss = -(weights_of(y) * chosen).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
