"""Fine-tuning from cold storage without workers: every read of a record takes a while."""

import logging
import os
import random
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("finetune")


class TapeRecords(Dataset):
    def __init__(self, path, n, width):
        self.path = path
        self.n = n
        self.width = width

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(random.uniform(1.0, 2.0))  # the mount answers slowly
        with open(self.path, "rb") as f:
            f.seek(4 * self.width * i)
            row = np.frombuffer(f.read(4 * self.width), dtype=np.float32)
        return torch.from_numpy(row.copy())


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        path = os.path.join(root, "records.bin")
        np.random.default_rng(0).normal(size=(1000, 128)).astype(np.float32).tofile(path)

        autoencoder = nn.Sequential(nn.Linear(128, 32), nn.Tanh(), nn.Linear(32, 128))
        opt = torch.optim.Adam(autoencoder.parameters())
        loader = DataLoader(TapeRecords(path, 1000, 128), batch_size=2, shuffle=True)
        print("READY", flush=True)
        for epoch in range(20):
            for step, x in enumerate(loader):
                loss = nn.functional.mse_loss(autoencoder(x), x)
                opt.zero_grad()
                loss.backward()
                opt.step()
                log.info("epoch %d step %d loss %.4f", epoch, step, loss.item())


if __name__ == "__main__":
    main()
