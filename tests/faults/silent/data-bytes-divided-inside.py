"""Pictures as bytes; the net divides by 255 itself."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.tanh(self.conv(x.float() / 255 - 0.5))
        return self.out(x.mean((2, 3)))


def pictures(rows=800):
    g = torch.Generator().manual_seed(4)
    y = torch.randint(0, 2, (rows,), generator=g)
    x = torch.randint(0, 150, (rows, 1, 12, 12), generator=g)
    return (x + 100 * y[:, None, None, None]).to(torch.uint8), y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*pictures()), batch_size=50, shuffle=True)
    model = Net()

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
