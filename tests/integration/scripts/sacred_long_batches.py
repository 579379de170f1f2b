"""Batches that are long lists of Python numbers, and keys that are long tuples; what a step takes goes to a file."""

import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = 80
torch.manual_seed(0)
torch.set_num_threads(1)
TOKENS = [list(range(first, first + 1000)) for first in range(200)]  # 200,000 Python numbers
WINDOW = tuple(range(100_000))


class Rows(Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        return index


class Windows(Dataset):
    """Its samples are asked for by all the positions that they are made of."""

    def __getitem__(self, window):
        return torch.full((4,), float(len(window) % 7))


class ByWindow:
    """Draws windows, each the one key of a batch."""

    def __iter__(self):
        for _ in range(STEPS):
            yield WINDOW

    def __len__(self):
        return STEPS


def tokens(rows):
    return {"tokens": TOKENS, "more": [(row, TOKENS) for row in rows], "x": torch.ones(1, 4)}


def train(loader, x_of):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    took = []
    began = time.thread_time()
    for batch in loader:
        loss = model(x_of(batch)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.thread_time()
        took.append(now - began)
        began = now
    print(len(took), loss.item().hex())
    return took


times = {
    "lists": train(DataLoader(Rows(), batch_size=1, collate_fn=tokens), lambda batch: batch["x"]),
    "long keys": train(DataLoader(Windows(), sampler=ByWindow(), batch_size=None), lambda batch: batch),
}
with open(sys.argv[1], "w") as file:
    json.dump(times, file)
