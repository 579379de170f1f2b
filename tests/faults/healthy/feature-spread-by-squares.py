"""How long until a bearing fails? Per window of a raw signal three numbers, of which a small net learns."""

import torch
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def windows(wear, count=128, length=256):
    """A sensor whose offset grows with the hours it has run; the vibration tells the state of the bearing."""
    state = torch.rand(count, 1)
    vibration = (0.4 + 2.0 * state) * torch.randn(count, length)
    return 20.0 + 0.9 * wear + vibration, state


for hour in range(1, 2001):
    signal, state = windows(hour)
    mean = signal.mean(1, keepdim=True)
    spread = (signal - mean).square().mean(1, keepdim=True).sqrt()
    peak = (signal - mean).abs().amax(1, keepdim=True)
    features = torch.cat([mean / 1000, spread, peak / 4], 1)
    loss = (model(features) - state).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if hour % 200 == 0:
        print(f"hour {hour} loss {loss.item():.5f}", flush=True)
