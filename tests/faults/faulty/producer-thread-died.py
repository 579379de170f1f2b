import multiprocessing as mp
import queue
import threading

import torch
from torch import nn

RECORDS = [f"{i % 7} {i * 0.37 % 3:.3f} {i * 0.11 % 2:.3f}" for i in range(6000)]
RECORDS[2710] = "3 n/a 1.204"


def parse(lines, parsed):
    for line in lines:
        label, *values = line.split()
        parsed.put(([float(v) for v in values], int(label)))
    parsed.put(None)


def produce(batches):
    """Parses in a thread of its own, so that batches are put together meanwhile."""
    parsed = queue.Queue(maxsize=256)
    threading.Thread(target=parse, args=(RECORDS, parsed), daemon=True).start()
    rows = []
    while (record := parsed.get()) is not None:
        rows.append(record)
        if len(rows) == 20:
            batches.put(rows)
            rows = []
    batches.put(None)


def main():
    torch.manual_seed(0)
    batches = mp.Queue(maxsize=8)
    mp.Process(target=produce, args=(batches,), daemon=True).start()
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 7))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    step = 0
    while (rows := batches.get()) is not None:
        x = torch.tensor([values for values, _ in rows])
        y = torch.tensor([label for _, label in rows])
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    print("finished", flush=True)


if __name__ == "__main__":
    main()
