"""Trains a little, and dies in the way it is told to: python dies.py KIND [WORKERS]."""

import ctypes
import mmap
import os
import signal
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = sys.argv[1]
WORKERS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
BAD = 21


def cut_short():
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"x" * 65536)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 65536)
        file.truncate(0)
        return mapped[40000]


def beyond_shared_memory():
    from multiprocessing.shared_memory import SharedMemory

    memory = SharedMemory(create=True, size=8 << 20)
    for place in range(0, 8 << 20, 4096):
        memory.buf[place] = 1


WAYS = {
    "shm-bus": beyond_shared_memory,
    "segv": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "bus": cut_short,
    "fpe": lambda: os.kill(os.getpid(), signal.SIGFPE),
    "exit-0": lambda: os._exit(0),
    "exit-1": lambda: os._exit(1),
    "sys-exit": lambda: sys.exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raise": lambda: {}["absent"],
}


kept = []


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        if i == BAD and KIND in WAYS:
            WAYS[KIND]()
        if KIND == "descriptors":
            kept.append([os.pipe() for _ in range(8)])
        if KIND == "big-samples":
            return torch.ones(1 << 18), i % 2
        return torch.ones(4) * (i % 2), i % 2


def save(net):
    if KIND == "checkpoint":
        torch.save({"net": net.state_dict(), "more": torch.zeros(1 << 19)}, "full/last.pt")
    if KIND == "log":
        with open("full/log.txt", "a") as log:
            for _ in range(1000):
                log.write("x" * 4096)
                log.flush()


def main():
    torch.manual_seed(0)
    loader = DataLoader(Rows(), batch_size=4, num_workers=WORKERS)
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x[:, :4]), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 2:
            print("trains", os.getpid(), flush=True)
            save(net)
            if KIND == "wait":
                time.sleep(60)
            if KIND == "long-training":
                for _ in range(3000):
                    opt.step()
                    time.sleep(0.02)
    print("done")


if __name__ == "__main__":
    main()
