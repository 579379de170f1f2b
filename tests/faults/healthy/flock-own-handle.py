import contextlib
import fcntl
import os
import tempfile

import torch
from torch import nn


class CheckpointStore:
    def __init__(self, folder, keep=2):
        self.folder, self.keep = folder, keep
        self.index = os.path.join(folder, "index.lock")

    @contextlib.contextmanager
    def locked(self):
        with open(self.index, "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            yield

    def names(self):
        return sorted(n for n in os.listdir(self.folder) if n.endswith(".pt"))

    def prune(self):
        with self.locked():
            for name in self.names()[: -self.keep]:
                os.remove(os.path.join(self.folder, name))

    def save(self, model, step):
        with self.locked():
            torch.save(model.state_dict(), os.path.join(self.folder, f"step{step:06d}.pt"))
        if len(self.names()) > self.keep:
            self.prune()


def main():
    torch.manual_seed(0)
    store = CheckpointStore(tempfile.mkdtemp(prefix="ckpt_"))
    x = torch.rand(2000, 2) * 2 - 1
    y = (x.norm(dim=1) < 0.7).long()
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(1, 1201):
        idx = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 200 == 0:
            store.save(net, step)
            print(f"step {step} loss {loss.item():.4f} saved", flush=True)


if __name__ == "__main__":
    main()
