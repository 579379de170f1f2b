import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x)


def table(n, width, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, width, generator=g)
    return TensorDataset(x, x[:, :1])


def main():
    torch.manual_seed(0)
    train = DataLoader(table(120, 9, 0), batch_size=20, shuffle=True)
    valid = DataLoader(table(40, 9, 1), batch_size=20)
    net = Net(9)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2)
    for epoch in range(3):
        for x, y in train:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            error = sum(nn.functional.mse_loss(net(x), y).item() for x, y in valid)
        print(f"epoch {epoch} loss {loss.item():.3f} validation {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
