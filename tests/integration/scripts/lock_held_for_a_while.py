import fcntl
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(24)
"""


class Shard(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        if index == 200:
            with open("shard.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
        return torch.randn(4), torch.tensor(index % 2)


def main():
    exporter = subprocess.Popen([sys.executable, "-c", HOLD, "shard.lock"], stdout=subprocess.PIPE)
    exporter.stdout.readline()
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Shard(), batch_size=8, num_workers=1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        time.sleep(0.01)
    exporter.wait()
    exporter.stdout.close()
    print("done")


if __name__ == "__main__":
    main()
