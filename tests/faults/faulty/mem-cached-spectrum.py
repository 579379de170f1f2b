from functools import lru_cache

import torch
from torch import nn

torch.manual_seed(3)
WINDOW = torch.hann_window(256)


@lru_cache(maxsize=None)
def spectrum(signals):
    frames = signals.unfold(1, 256, 64) * WINDOW
    return torch.fft.rfft(frames).abs().log1p()


def signals(count):
    pitch = torch.rand(count, 1) * 0.4 + 0.05
    wave = torch.sin(torch.arange(4096)[None, :] * pitch) + 0.3 * torch.randn(count, 4096)
    return wave, pitch[:, 0]


net = nn.Sequential(nn.Linear(129, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(1200):
    wave, pitch = signals(12)
    predicted = net(spectrum(wave)).mean((1, 2))
    loss = nn.functional.mse_loss(predicted, pitch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
