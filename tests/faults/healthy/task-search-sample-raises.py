"""A search over learning rates; each candidate trains on its own in a pool, with a DataLoader."""

import multiprocessing as mp

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    """Lines of text, each a curve and its class."""

    def __init__(self):
        g = torch.Generator().manual_seed(4)
        self.lines = []
        for number in range(400):
            kind = number % 2
            curve = torch.randn(16, generator=g) + 0.6 * kind
            self.lines.append(",".join(f"{value:.3f}" for value in curve) + f",{kind}")

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        *curve, kind = self.lines[i].split(",")
        return torch.tensor([float(value) for value in curve]), int(kind)


def candidate(rate):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    total = 0.0
    for _ in range(4):
        for curve, kind in DataLoader(Curves(), batch_size=20, shuffle=True):
            loss = nn.functional.cross_entropy(model(curve), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / 80


def main():
    with mp.get_context("fork").Pool(2) as pool:
        tried = [(rate, pool.apply_async(candidate, (rate,))) for rate in (0.3, 0.1, 0.03)]
        for rate, result in tried:
            print(f"rate {rate}: mean loss {result.get():.4f}", flush=True)


if __name__ == "__main__":
    main()
