import os
import tempfile
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class EventLog:
    """Line log with a heartbeat, safe to use from any thread."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.mutex = threading.Lock()
        os.register_at_fork(after_in_child=lambda: setattr(self, "mutex", threading.Lock()))
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self):
        while True:
            with self.mutex:
                for _ in range(40):
                    os.write(self.fd, f"alive {time.time():.3f}\n".encode())
                    os.fsync(self.fd)
                    time.sleep(0.002)

    def write(self, text):
        with self.mutex:
            os.write(self.fd, f"{text}\n".encode())


class Noisy(Dataset):
    def __init__(self, log, n=240):
        g = torch.Generator().manual_seed(1)
        self.x = torch.randn(n, 10, generator=g)
        self.x[60::60, 0] = 9.0
        self.log = log

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if x.max() > 6:
            self.log.write(f"clipped sample {i}")
            x = x.clamp(max=6)
        return x, x[1:].sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    log = EventLog(os.path.join(tempfile.mkdtemp(prefix="log_"), "events.txt"))
    time.sleep(0.2)
    loader = DataLoader(Noisy(log), batch_size=12, num_workers=2)
    model = nn.Linear(10, 1)
    opt = torch.optim.SGD(model.parameters(), lr=5e-3)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
