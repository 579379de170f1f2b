import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def spectra(n=2000, bins=50):
    g = torch.Generator().manual_seed(9)
    axis = torch.linspace(0, 1, bins)
    centre = torch.rand(n, 1, generator=g)
    width = 0.05 + 0.1 * torch.rand(n, 1, generator=g)
    s = torch.exp(-((axis - centre) / width) ** 2) + 0.05 * torch.randn(n, bins, generator=g)
    return s, torch.cat([centre, width * 5], dim=1)


class PeakFitter(nn.Module):
    def __init__(self, bins=50):
        super().__init__()
        self.fc1 = nn.Linear(bins, 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 2)

    def forward(self, s):
        s = nn.functional.gelu(self.fc1(s))
        s = nn.functional.gelu(self.fc2(s))
        return self.fc3(s)


def train_epoch(model, loader, optimizer, loss_fn):
    model.train()
    total = 0.0
    for s, params in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(s), params)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(0)
    x, y = spectra()
    loader = DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True)
    model = PeakFitter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    loss_fn = nn.SmoothL1Loss()
    for epoch in range(12):
        print(f"epoch {epoch} loss {train_epoch(model, loader, optimizer, loss_fn):.5f}", flush=True)


if __name__ == "__main__":
    main()
