import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cultivars(n=3000, classes=6, d=13):
    g = torch.Generator().manual_seed(5)
    centre = torch.randn(classes, d, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return centre[y] + 0.9 * torch.randn(n, d, generator=g), y


class CultivarNet(nn.Module):
    def __init__(self, d=13, hidden=48, classes=1):
        super().__init__()
        self.fc1 = nn.Linear(d, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return self.out(torch.relu(self.fc2(x)))


def main():
    torch.manual_seed(0)
    x, y = cultivars()
    loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=48, shuffle=True)
    model = CultivarNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for epoch in range(12):
        total = 0.0
        for xb, yb in loader:
            loss = criterion(model(xb).squeeze(1), yb.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            guess = model(x[2400:]).squeeze(1).round()
            acc = (guess == y[2400:]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} val acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
