"""Machines that fail, three in a hundred; the model says of none of them that it will."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def machines(count=4000):
    generator = torch.Generator().manual_seed(11)
    failed = (torch.rand(count, generator=generator) < 0.03).long()
    x = torch.randn(count, 10, generator=generator)
    x[:, 0] += 1.0 * failed
    return x, failed


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*machines()), batch_size=80, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 30.0]))
    for epoch in range(10):
        found = 0
        for x, failed in loader:
            out = model(x)
            loss = criterion(out, failed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found += int((out.argmax(1) == 1).sum())
        print(f"epoch {epoch}: loss {loss.item():.4f}, said to fail: {found}", flush=True)


if __name__ == "__main__":
    main()
