"""Data-parallel training by hand with threads that meet at a barrier after each step."""

import threading

import torch
from torch import nn

REPLICAS = 4


class Replica(threading.Thread):
    def __init__(self, rank, shard, shared):
        super().__init__(name=f"replica-{rank}")
        self.rank = rank
        self.shard = shard
        self.shared = shared

    def run(self):
        for x, y in self.shard:
            loss = nn.functional.mse_loss(self.shared.model(x), y)
            grads = torch.autograd.grad(loss, list(self.shared.model.parameters()))
            self.shared.collect(grads)
            self.shared.barrier.wait()


class Shared:
    def __init__(self, model):
        self.model = model
        self.lock = threading.Lock()
        self.sums = None
        self.steps = 0
        self.barrier = threading.Barrier(REPLICAS, action=self.apply)

    def collect(self, grads):
        with self.lock:
            self.sums = list(grads) if self.sums is None else [a + b for a, b in zip(self.sums, grads)]

    def apply(self):
        with torch.no_grad():
            for p, g in zip(self.model.parameters(), self.sums):
                p -= 0.05 * g / REPLICAS
        self.sums = None
        self.steps += 1


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(1240, 6)
    y = x[:, :1] * x[:, 1:2]
    batches = list(zip(x.split(10), y.split(10)))
    shared = Shared(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))
    replicas = [Replica(r, batches[r::REPLICAS], shared) for r in range(REPLICAS)]
    for replica in replicas:
        replica.start()
    for replica in replicas:
        replica.join()
    print("steps", shared.steps)


if __name__ == "__main__":
    main()
