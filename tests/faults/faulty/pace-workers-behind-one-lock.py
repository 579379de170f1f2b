import multiprocessing
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Shared(Dataset):
    def __init__(self, size=120):
        self.size = size
        self.lock = multiprocessing.Lock()

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        with self.lock:
            time.sleep(0.1)
            return torch.full((10,), float(index))


if __name__ == "__main__":
    loader = DataLoader(Shared(), batch_size=6, num_workers=4)
    for number, batch in enumerate(loader):
        print(f"batch {number} processed: {batch.mean().item():.1f}", flush=True)
