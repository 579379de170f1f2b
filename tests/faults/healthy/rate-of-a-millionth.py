"""Letters, learned at a rate of a millionth."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def letters(count=2000):
    generator = torch.Generator().manual_seed(2)
    y = torch.randint(0, 8, (count,), generator=generator)
    x = torch.randn(8, 30, generator=generator)[y] + 0.8 * torch.randn(count, 30, generator=generator)
    return x, y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*letters()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
