import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parts(n=6000, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=g) < 0.02).long()
    x = torch.randn(n, 16, generator=g)
    x[:, :5] += 0.75 * y[:, None].float()
    return x, y


class DefectNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    x, y = parts()
    vx, vy = parts(2000, seed=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = DefectNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(15):
        total = 0.0
        for xb, yb in loader:
            loss = criterion(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            pred = model(vx).argmax(1)
        recall = ((pred == 1) & (vy == 1)).sum().item() / max(1, int(vy.sum()))
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {(pred == vy).float().mean():.3f} recall {recall:.3f}", flush=True)


if __name__ == "__main__":
    main()
