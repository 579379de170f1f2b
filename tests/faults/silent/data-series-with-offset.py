"""Series far from 0 into a net with a LayerNorm first, and NaN-free targets in kelvin."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def series(rows=1000):
    g = torch.Generator().manual_seed(9)
    phase = 6.28 * torch.rand(rows, 1, generator=g)
    t = torch.linspace(0, 6.28, 24)[None, :]
    x = torch.stack((290 + 8 * torch.sin(t + phase), 1013 + 5 * torch.cos(t + phase)), 2)
    return x, torch.sin(phase).squeeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.rnn, self.out = nn.BatchNorm1d(2), nn.GRU(2, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        _, h = self.rnn(self.norm(x.transpose(1, 2)).transpose(1, 2))
        return self.out(h[-1])


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*series()), batch_size=50, shuffle=True)
    model = Net()

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
