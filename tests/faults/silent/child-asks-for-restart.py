import multiprocessing as mp
import os
import sys
import tempfile

import torch
from torch import nn

NEEDS_RESTART = 3


def train(path, total_epochs):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(2000, 12)
    y = (x[:, :3].prod(1, keepdim=True) > 0).float()
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        first = state["epoch"] + 1
    for epoch in range(first, total_epochs):
        total = 0.0
        for start in range(0, 2000, 25):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[start:start + 25]), y[start:start + 25])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)
        print(f"epoch {epoch} loss {total / 80:.4f}", flush=True)
        if epoch % 4 == 3 and epoch + 1 < total_epochs:
            sys.exit(NEEDS_RESTART)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "state.pt")
        for attempt in range(10):
            p = mp.get_context("spawn").Process(target=train, args=(path, 8))
            p.start()
            p.join()
            print(f"attempt {attempt} ended with {p.exitcode}", flush=True)
            if p.exitcode != NEEDS_RESTART:
                break
        sys.exit(p.exitcode)


if __name__ == "__main__":
    main()
