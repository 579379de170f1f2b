import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class LoadCurve(Dataset):
    """Hourly load; 24 hours in, next hour out. Meter log in standardised units."""

    def __init__(self, hours=4000):
        g = torch.Generator().manual_seed(0)
        t = torch.arange(hours).float()
        load = torch.sin(t * 2 * torch.pi / 24) + 0.4 * torch.sin(t * 2 * torch.pi / 168)
        load = load + 0.1 * torch.randn(hours, generator=g)
        self.load = load

    def __len__(self):
        return len(self.load) - 24

    def __getitem__(self, i):
        return self.load[i:i + 24], self.load[i + 24]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(LoadCurve(), batch_size=32, shuffle=True)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    step = 0
    for epoch in range(8):
        for x, y in loader:
            pred = model(x)
            loss = nn.functional.mse_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 20 == 0:
                print(f"step {step} mse {loss.item():.4f}", flush=True)
            step += 1


if __name__ == "__main__":
    main()
