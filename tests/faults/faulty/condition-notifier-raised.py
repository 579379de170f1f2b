import threading

import torch
from torch import nn


class SharedWindow:
    """The latest window of readings; the trainer waits until a new one is complete."""

    def __init__(self):
        self.fresh = threading.Condition()
        self.window = None

    def publish(self, window):
        with self.fresh:
            scale = 1.0 / (max(window) - min(window))
            self.window = [v * scale for v in window]
            self.fresh.notify_all()

    def next(self):
        with self.fresh:
            while self.window is None:
                self.fresh.wait()
            window, self.window = self.window, None
            return window


class Sensor(threading.Thread):
    def __init__(self, shared, taken):
        super().__init__(daemon=True)
        self.shared = shared
        self.taken = taken

    def run(self):
        for tick in range(1, 3000):
            reading = [float((1 + tick * k) % 509) for k in range(1, 9)]
            self.shared.publish(reading)
            self.taken.acquire()


def main():
    torch.manual_seed(0)
    shared = SharedWindow()
    taken = threading.Semaphore(0)
    Sensor(shared, taken).start()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1000):
        x = torch.tensor(shared.next())
        taken.release()
        loss = (model(x) - x.mean()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
