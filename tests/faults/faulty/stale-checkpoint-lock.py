import multiprocessing as mp
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FileLock:
    def __init__(self, path):
        self.path = path

    def __enter__(self):
        while True:
            try:
                fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                time.sleep(0.05)
                continue
            os.write(fd, f"{os.getpid()}\n".encode())
            os.close(fd)
            return self

    def __exit__(self, *exc):
        os.remove(self.path)


def archive(folder, epoch):
    """Copies a checkpoint to the archive in its own process."""
    with FileLock(os.path.join(folder, "checkpoint.lock")):
        state = torch.load(os.path.join(folder, "last.pt"))
        torch.save(state, os.path.join(folder, f"archive{epoch}.pt"))
        os._exit(0)


def main():
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="archive_")
    x = torch.randn(2500, 9)
    y = x[:, :2].prod(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True)
    model = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)
        with FileLock(os.path.join(folder, "checkpoint.lock")):
            torch.save(model.state_dict(), os.path.join(folder, "last.pt"))
        if epoch % 2 == 0:
            job = mp.get_context("spawn").Process(target=archive, args=(folder, epoch))
            job.start()
            job.join()


if __name__ == "__main__":
    main()
