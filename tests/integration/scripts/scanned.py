"""A training whose dataset has this or that in it; the first word says what."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

WHAT = sys.argv[1]


class Records(Dataset):
    def __init__(self, rows=3000):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(rows, 6, generator=g)
        self.y = (self.x[:, 0] > 0).long()
        if WHAT in ("bad", "long"):
            self.x[55, 2] = float("nan")
            self.x[2000], self.y[2000] = self.x[10], self.y[10]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        if WHAT == "bad":
            self.trouble(i)
        if WHAT == "long" and i > 100:
            open("began", "w").close()
            time.sleep(0.05)
        return {"x": self.x[i], "label": self.y[i]}

    def trouble(self, i):
        if i in (100, 1999):
            raise ValueError(f"broken record {i}")
        if i == 700:
            time.sleep(0.6)
        if i == 1200:
            while True:
                pass
        if i == 1300:
            time.sleep(1000)


class Stream(IterableDataset):
    def __iter__(self):
        g = torch.Generator().manual_seed(0)
        for n in range(1000):
            if n == 400:
                raise OSError("the shard ends here")
            x = torch.randn(6, generator=g)
            yield {"x": x, "label": int(x[0] > 0)}


def main():
    if WHAT == "dies":
        raise KeyError("no such table")
    if WHAT == "nothing":
        return
    data = Stream() if WHAT == "stream" else Records()
    context = "spawn" if WHAT == "spawn" else None
    loader = DataLoader(data, batch_size=32, num_workers=1 if context else 0, multiprocessing_context=context)
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["x"]), batch["label"])
        loss.backward()
        optimizer.step()
        print("trained")


if __name__ == "__main__":
    main()
