"""River gauges: windows of hourly readings; hours that failed a check are set to the mean as a window is cut."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, readings, good, hours=24):
        self.readings, self.good, self.hours = readings, good, hours

    def __len__(self):
        return len(self.readings) - self.hours - 1

    def __getitem__(self, first):
        last = first + self.hours
        window = self.readings[first:last].clone()
        window[~self.good[first:last]] = 0.0
        return window, self.readings[last, 0].unsqueeze(0)


def gauges(hours=2000):
    g = torch.Generator().manual_seed(8)
    level = torch.sin(torch.arange(hours) / 20.0).unsqueeze(1) + 0.1 * torch.randn(hours, 3, generator=g)
    return level, torch.rand(hours, generator=g) > 0.08


def main():
    torch.manual_seed(0)
    loader = DataLoader(Windows(*gauges()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(72, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for window, level in loader:
            loss = nn.functional.mse_loss(model(window), level)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
