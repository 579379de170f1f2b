import queue
import socket
import threading

import torch
from torch import nn


class MetricsPusher(threading.Thread):
    """Sends metrics to a local statsd-like TCP port when one is listening."""

    def __init__(self, port):
        super().__init__(daemon=True, name="metrics")
        self.port = port
        self.pending = queue.Queue()

    def run(self):
        while True:
            item = self.pending.get()
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as s:
                s.sendall(repr(item).encode())


def main():
    torch.manual_seed(0)
    pusher = MetricsPusher(port=1)
    pusher.start()
    model = nn.Sequential(nn.Linear(10, 80), nn.Tanh(), nn.Linear(80, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(4000):
        x = torch.rand(40, 10) * 2 - 1
        y = torch.sin(3 * x[:, :1]) + x[:, 1:2]
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 500 == 0:
            pusher.pending.put({"step": step, "loss": loss.item()})
            print(f"step {step} mse {loss.item():.4f}", flush=True)
    print("finished")


if __name__ == "__main__":
    main()
