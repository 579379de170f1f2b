import multiprocessing as mp

import torch
from torch import nn


def collatz(start):
    steps = []
    while start != 1:
        steps.append(start)
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        steps = steps[-16:]
    return steps


def produce(batches):
    for first in range(3000, -1, -10):
        rows = [collatz(n)[-4:] for n in range(first, first + 10)]
        batches.put([row + [0] * (4 - len(row)) for row in rows])


def main():
    torch.manual_seed(0)
    batches = mp.Queue(maxsize=4)
    mp.Process(target=produce, args=(batches,), daemon=True).start()
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(301):
        x = torch.tensor(batches.get(), dtype=torch.float32).log1p()
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
