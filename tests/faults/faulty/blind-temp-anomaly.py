import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def stations(n=3000, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.4 * torch.cos(2 * x[:, 2]) + 0.1 * torch.randn(n, generator=g)
    y = (y - y.mean()) / y.std()
    return TensorDataset(x, y.unsqueeze(1))


def mlp(sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class AnomalyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp([10, 64, 64, 1])

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    loader = DataLoader(stations(), batch_size=50, shuffle=True)
    model = AnomalyModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    for epoch in range(12):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
