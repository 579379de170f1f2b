"""Which of four machines hums? Spectra are computed by a pool of threads, then a small network is trained on them."""

import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import torch
from torch import nn


def recordings(count, seed):
    draw = np.random.default_rng(seed)
    return [{"machine": int(draw.integers(4)), "seed": int(draw.integers(1 << 30))} for _ in range(count)]


def spectrum(recording):
    draw = np.random.default_rng(recording["seed"])
    time.sleep(draw.exponential(0.002))  # the file comes from far away
    at = np.arange(256) / 256
    hum = np.sin(2 * np.pi * (20 + 9 * recording["machine"]) * at + draw.uniform(0, 6)) + draw.normal(size=256)
    return np.log(np.abs(np.fft.rfft(hum)[8:56]) + 1e-2).astype(np.float32)


def load(listed):
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(spectrum, each) for each in listed]
        spectra = [job.result() for job in as_completed(jobs)]
    machines = torch.tensor([each["machine"] for each in listed])
    return torch.from_numpy(np.stack(spectra)), machines


torch.manual_seed(1)
x, y = load(recordings(1500, seed=3))
net = nn.Sequential(nn.Linear(48, 12), nn.ReLU(), nn.Linear(12, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    print(f"epoch {epoch}: {total:.3f}")
