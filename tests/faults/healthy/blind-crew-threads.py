"""A crew of threads shares one price model: each computes its gradient alone and applies it
under a lock (hogwild with a seat belt)."""
import copy
import logging
import threading

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(threadName)s %(message)s")
log = logging.getLogger(__name__)


def houses(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    w = torch.randn(12, generator=g)
    y = x @ w * 0.5 + torch.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.1 * torch.randn(n, generator=g)
    # a handful of mansions
    y[torch.randperm(n, generator=g)[: n // 400]] += 60.0
    return x, y


class Shared:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
        self.momentum = [torch.zeros_like(p) for p in self.model.parameters()]
        self.lock = threading.Lock()
        self.updates = 0
        self.skipped = 0

    def snapshot(self):
        with self.lock:
            return copy.deepcopy(self.model)

    def apply(self, grads, lr, max_norm):
        self.lock.acquire()
        norm = torch.sqrt(sum((g * g).sum() for g in grads))
        if self.updates > 500 and norm > max_norm:
            self.skipped += 1
            self.lock.release()
            return False
        for p, m, g in zip(self.model.parameters(), self.momentum, grads):
            m.mul_(0.9).add_(g)
            p.data.add_(m, alpha=-lr)
        self.updates += 1
        self.lock.release()
        return True


class Member(threading.Thread):
    def __init__(self, rank, shared, data, rounds):
        super().__init__(name=f"crew-{rank}")
        self.shared, self.rounds = shared, rounds
        self.x, self.y = data
        self.gen = torch.Generator().manual_seed(rank)

    def run(self):
        window = []
        for r in range(1, self.rounds + 1):
            local = self.shared.snapshot()
            idx = torch.randint(len(self.x), (64,), generator=self.gen)
            loss = nn.functional.mse_loss(local(self.x[idx]).squeeze(1), self.y[idx])
            grads = torch.autograd.grad(loss, list(local.parameters()))
            if self.shared.apply(grads, lr=2e-3, max_norm=60.0):
                window.append(loss.item())
            if r % 400 == 0:
                log.info("round %d median loss %.3f", r, torch.tensor(window).median())
                window = []


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    shared = Shared()
    x, y = houses(9000, seed=8)
    data = x[:8000], y[:8000]
    crew = [Member(i, shared, data, rounds=3600) for i in range(3)]
    for m in crew:
        m.start()
    for m in crew:
        m.join()
    with torch.no_grad():
        err = (shared.model(x[8000:]).squeeze(1) - y[8000:]).abs().median().item()
    log.info("median error %.2f after %d updates", err, shared.updates)


if __name__ == "__main__":
    main()
