import time

import torch
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    """Asks a device for each sample, politely."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        x = torch.full((10,), float(index))
        time.sleep(0.001)
        return x


for number, batch in enumerate(DataLoader(Readings(), batch_size=10)):
    time.sleep(0.5)
    print(f"batch {number} processed: {batch.sum().item():.0f}", flush=True)
