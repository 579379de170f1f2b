"""A background process fits the model; the parent waits for so many epochs, then asks how good it is."""
import multiprocessing
import time
from dataclasses import dataclass

import torch
from torch import nn

multiprocessing.set_start_method("fork", force=True)


@dataclass
class State:
    epoch: int = 0

    def report(self):
        return f"epoch {self.epoch}"


def waves(n=512):
    g = torch.Generator().manual_seed(6)
    t = torch.rand(n, 1, generator=g) * 6 - 3
    return t, torch.sin(2 * t) + 0.05 * torch.randn(n, 1, generator=g)


class Background:
    def __init__(self, state, epochs=30):
        self.state, self.epochs = state, epochs
        self.net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.net.share_memory()

    def fit(self):
        torch.set_num_threads(1)
        t, y = waves()
        opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        while True:
            for rows in torch.randperm(len(t)).split(32):
                loss = nn.functional.mse_loss(self.net(t[rows]), y[rows])
                opt.zero_grad()
                loss.backward()
                opt.step()
            self.state.epoch += 1
            time.sleep(0.02)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    state = State()
    background = Background(state)
    process = multiprocessing.Process(target=background.fit, daemon=True)
    process.start()
    while state.epoch < background.epochs:
        time.sleep(0.2)
    process.terminate()
    t, y = waves()
    with torch.no_grad():
        print(f"{state.report()}, loss {nn.functional.mse_loss(background.net(t), y).item():.4f}", flush=True)
