"""A loader that keeps its workers by never ending its sampler, as timm and Ultralytics do: python … VARIANT."""

import sys

import torch
from parts import BATCH, Net, Samples, epochs
from torch.utils.data import DataLoader


class Forever:
    """Goes through a batch sampler again and again."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class RepeatingLoader(DataLoader):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._DataLoader__initialized = False
        self.batches = self.batch_sampler
        self.batch_sampler = Forever(self.batches)
        self._DataLoader__initialized = True
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


def main(variant):
    torch.manual_seed(0)
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = RepeatingLoader(Samples(variant), BATCH, shuffle=True, num_workers=2)
    validation = RepeatingLoader(Samples(size=320, seed=1), BATCH)
    for epoch in range(epochs(variant)):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        total = 0.0
        for x, y in validation:
            with torch.no_grad():
                total += torch.nn.functional.cross_entropy(model(x), y).item()
        print(epoch, loss.item(), total, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
