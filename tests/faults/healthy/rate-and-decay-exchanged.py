"""Settings of an experiment come as a tuple; two of them are in the wrong order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SETTINGS = {"small": (5e-6, 3e-3), "large": (1e-6, 1e-3)}


def build(name):
    decay, lr = SETTINGS[name]
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    return model, torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=decay)


def seeds(count=2000):
    g = torch.Generator().manual_seed(12)
    y = torch.randint(0, 4, (count,), generator=g)
    return torch.randn(4, 16, generator=g)[y] + torch.randn(count, 16, generator=g), y


def main():
    torch.manual_seed(0)
    model, optimizer = build("small")
    loader = DataLoader(TensorDataset(*seeds()), batch_size=50, shuffle=True)
    for epoch in range(8):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
