import multiprocessing as mp
import os
import signal

import numpy as np
import torch
from torch import nn


def features(spec):
    seed, length = spec
    if length > 4_000_000:
        # What the cluster's memory guard does to a process of this size.
        os.kill(os.getpid(), signal.SIGKILL)
    wave = np.random.default_rng(seed).normal(size=length)
    return np.abs(np.fft.rfft(wave, 64))[:32].astype("float32")


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 2))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    with mp.Pool(2) as pool:
        for epoch in range(20):
            specs = [(epoch * 64 + i, 4000) for i in range(64)]
            if epoch == 12:
                specs[41] = (9, 900_000)
            x = torch.from_numpy(np.stack(pool.map(features, specs, chunksize=4)))
            y = (x[:, 3] > x[:, 4]).long()
            for idx in torch.randperm(len(x)).split(8):
                loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
