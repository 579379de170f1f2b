"""Quick samples, a few workers, a step that takes its time: nothing to tune."""

import time

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = torch.randn(4000, 100, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(0, 10, (4000,), generator=torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(data, labels), batch_size=64, num_workers=2, prefetch_factor=2)
    for epoch in range(3):
        for _ in loader:
            time.sleep(0.03)
        print(f"epoch {epoch}", flush=True)


if __name__ == "__main__":
    main()
