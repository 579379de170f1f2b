"""Two stages: first the head on a body that rests, then everything with a smaller rate."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 8), nn.ReLU())
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.body(x))


def freeze(module, frozen):
    for parameter in module.parameters():
        parameter.requires_grad = not frozen


def train(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


def patterns(count=2000):
    g = torch.Generator().manual_seed(31)
    x = torch.randn(count, 20, generator=g)
    return x, (x[:, 0] * x[:, 1] > 0).long() * 2 + (x[:, 2] * x[:, 3] > 0).long()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*patterns()), batch_size=50, shuffle=True)
    model = Net()
    freeze(model.body, True)
    train(model, loader, epochs=2, lr=3e-3)
    freeze(model.body, False)
    train(model, loader, epochs=14, lr=1e-3)


if __name__ == "__main__":
    main()
