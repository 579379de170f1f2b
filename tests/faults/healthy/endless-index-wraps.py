import torch
from torch import nn
from torch.utils.data import Dataset


class SlidingWindows(Dataset):
    """Windows over a long signal; the last ones wrap around to the start."""

    def __init__(self, signal, window=64, stride=8):
        self.signal = signal
        self.window = window
        self.stride = stride

    def __len__(self):
        return len(self.signal) // self.stride

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError(i)
        start = (i * self.stride) % len(self.signal)
        idx = (torch.arange(self.window + 1) + start) % len(self.signal)
        chunk = self.signal[idx]
        return chunk[:-1], chunk[-1:]


class Forecaster(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(window, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.net(x)


def make_signal(n=6400):
    t = torch.arange(n) / 40.0
    g = torch.Generator().manual_seed(1)
    return torch.sin(t) + 0.5 * torch.sin(2.7 * t) + 0.1 * torch.randn(n, generator=g)


torch.manual_seed(0)
dataset = SlidingWindows(make_signal())
model = Forecaster(dataset.window)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
criterion = nn.MSELoss()

print(f"{len(dataset)} windows", flush=True)
for epoch in range(8):
    epoch_loss, count = 0.0, 0
    for x, y in dataset:
        pred = model(x)
        loss = criterion(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        count += 1
        if count % 400 == 0:
            print(f"epoch {epoch + 1} window {count} avg loss {epoch_loss / count:.5f}", flush=True)
    print(f"epoch {epoch + 1} finished, avg loss {epoch_loss / count:.5f}", flush=True)
