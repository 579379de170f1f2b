"""A training whose dataset is of one kind: reads through an open file, gives a stream that is not divided, or is made
harder between passes; and one to which workers only cost."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

KIND = sys.argv[1]


class Records(Dataset):
    def __init__(self):
        with open("records.bin", "wb") as file:
            file.write(bytes(4 * 64 * 4096))
        self.file = open("records.bin", "rb")  # noqa: SIM115  # held open: that is what is at stake

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        self.file.seek(256 * index)
        time.sleep(0.001)
        return torch.frombuffer(bytearray(self.file.read(256)), dtype=torch.float32)


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(4096):
            time.sleep(0.001)
            yield torch.randn(64)


class Harder(Dataset):
    def __init__(self):
        self.level = 0.0

    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.randn(64) * self.level


class Plain(Dataset):
    def __init__(self):
        self.rows = torch.randn(20_000, 64)

    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        return self.rows[index]


def seed(worker):
    torch.manual_seed(worker)


if KIND == "stream":
    loader = DataLoader(Stream(), batch_size=16, worker_init_fn=seed)
elif KIND == "plain":
    loader = DataLoader(Plain(), batch_size=64, num_workers=2, timeout=60, multiprocessing_context="fork")
elif KIND == "harder":
    loader = DataLoader(Harder(), batch_size=16, num_workers=2)
else:
    loader = DataLoader(Records(), batch_size=16)
model = nn.Linear(64, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(100):
    if KIND == "harder":
        loader.dataset.level = epoch / 100
    for x in loader:
        opt.zero_grad()
        model(x).pow(2).mean().backward()
        opt.step()
