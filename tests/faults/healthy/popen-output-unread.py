import subprocess
import sys

import torch
from torch import nn

TRACKER = """
import sys
best = float("inf")
for line in sys.stdin:
    step, loss = line.split()
    best = min(best, float(loss))
    print(f"received step {step}, loss {loss}, best so far {best:.6f}", flush=True)
"""


def main():
    torch.manual_seed(0)
    x = torch.randn(2000, 10)
    y = x[:, :3].sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    tracker = subprocess.Popen(
        [sys.executable, "-c", TRACKER], text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    for step in range(6000):
        idx = torch.randint(0, len(x), (8,))
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tracker.stdin.write(f"{step} {loss.item():.6f}\n")
        tracker.stdin.flush()
        if step % 500 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)
    tracker.stdin.close()
    tracker.wait()


if __name__ == "__main__":
    main()
