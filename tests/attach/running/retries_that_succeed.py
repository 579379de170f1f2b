"""Samples come from a slow address with three tries each, and do come."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


def get(url):
    end = time.time() + 40
    while time.time() < end:
        time.sleep(0.05)
    return torch.randn(8)


class Remote(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        url = "https://reader:not-for-your-eyes@data.invalid/" + str(index)
        for _ in range(3):
            try:
                return get(url)
            except OSError:
                time.sleep(1)
        raise OSError(url)


def main():
    print("READY", flush=True)
    for step, _ in enumerate(DataLoader(Remote(), batch_size=1, num_workers=2)):
        print(step, flush=True)


if __name__ == "__main__":
    main()
