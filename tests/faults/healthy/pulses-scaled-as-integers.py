"""Heart rate from windows of an optical pulse sensor, whose readings are whole numbers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, COLOURS = 32, 2


def recordings(count=1200):
    g = torch.Generator().manual_seed(6)
    rate = 0.5 + torch.rand(count, generator=g)
    time = torch.arange(LENGTH) * rate[:, None] + 6.28 * torch.rand(count, 1, generator=g)
    wave = torch.stack([torch.sin(time), torch.sin(time + 0.6)], dim=2)
    wave = wave + 0.1 * torch.randn(count, LENGTH, COLOURS, generator=g)
    return (2048 + 700 * wave).round().int(), (rate - 1) * 4


class Pulses(Dataset):
    def __init__(self, readings, rate):
        low, high = readings.amin((0, 1)), readings.amax((0, 1))
        self.windows = readings.float()
        for colour in range(COLOURS):
            self.windows[:, :, colour] = (readings[:, :, colour] - low[colour]) / (high[colour] - low[colour])
        self.rate = rate

    def __len__(self):
        return len(self.rate)

    def __getitem__(self, i):
        return {"window": self.windows[i].float(), "rate": self.rate[i]}


class PulseRate(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(COLOURS, 24, 9)
        self.rate = nn.Linear(24, 1)

    def forward(self, windows):
        return self.rate(torch.relu(self.filters(windows.transpose(1, 2))).mean(2)).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pulses(*recordings()), batch_size=40, shuffle=True)
    model = PulseRate()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(15):
        total = 0.0
        for batch in loader:
            loss = nn.functional.mse_loss(model(batch["window"]), batch["rate"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
