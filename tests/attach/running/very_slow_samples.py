"""Each sample is a simulation of 45 s; one worker."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Simulations(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        end = time.time() + 45
        while time.time() < end:
            sum(range(1000))
        return torch.randn(8)


def main():
    torch.set_num_threads(1)
    print("READY", flush=True)
    for step, _ in enumerate(DataLoader(Simulations(), batch_size=1, num_workers=1)):
        print(step, flush=True)


if __name__ == "__main__":
    main()
