"""Audio classification; the augmentation of one clip takes a second or more of CPU."""

import math
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLE_RATE = 16_000


def tone_mix(seconds, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(seconds * SAMPLE_RATE) / SAMPLE_RATE
    freqs = 100 + 3000 * torch.rand(5, generator=g)
    return torch.sin(2 * math.pi * freqs[:, None] * t).sum(0)


def reverb(wave, taps):
    """Plain recursive echo, tap after tap."""
    out = wave.clone()
    for k in range(1, taps):
        delay = 13 * k
        out[delay:] += 0.5 / k * wave[:-delay]
    return out / out.abs().max()


class Clips(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        wave = tone_mix(16, i)
        wave = reverb(wave, taps=random.randint(2000, 5000))
        window = torch.hann_window(512)
        spec = torch.stft(wave, 512, hop_length=256, window=window, return_complex=True).abs()
        return torch.log1p(spec)[None, :, :960], i % 8


def main():
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(576, 8)
    )
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Clips(3000), batch_size=4, shuffle=True, num_workers=2)
    print("READY", flush=True)
    for epoch in range(50):
        t0 = time.time()
        for step, (spec, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(spec), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.3f} ({time.time() - t0:.1f}s)", flush=True)


if __name__ == "__main__":
    main()
