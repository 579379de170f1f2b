import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Drawn(Dataset):
    """Made up in the workers, which keep a log: appended to by one handle, written to by another."""

    def __init__(self, folder):
        self.log = open(os.path.join(folder, "workers.log"), "a+")
        self.trace = open(os.path.join(folder, "trace.txt"), "w+b", buffering=0)
        self.trace.write(b"begin\n")

    def __len__(self):
        return 3000

    def __getitem__(self, i):
        if not i % 7:
            self.log.write(f"{i}\n")
            self.log.flush()
            self.trace.write(b"sample\n")
        g = torch.Generator().manual_seed(i)
        x = torch.randn(32, generator=g)
        return x, int(x.sum() > 0)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "schedule.txt")
        with open(path, "w") as out:
            out.writelines(f"{0.05 / (1 + i // 50):.6f}\n" for i in range(2000))
        data = Drawn(folder)
        with open(path, "rb", buffering=0) as schedule:
            net = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
            opt = torch.optim.SGD(net.parameters(), lr=0.05)
            for epoch in range(3):
                for step, (x, y) in enumerate(DataLoader(data, batch_size=30, num_workers=2)):
                    schedule.seek(9 * step)
                    opt.param_groups[0]["lr"] = float(schedule.read(8))
                    loss = nn.functional.cross_entropy(net(x), y)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
