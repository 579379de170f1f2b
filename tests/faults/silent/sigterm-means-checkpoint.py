import io
import os
import signal
import subprocess

import torch
from torch import nn

requested = False


def on_sigterm(signum, frame):
    global requested
    requested = True


def main():
    global requested
    signal.signal(signal.SIGTERM, on_sigterm)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 8))
    teacher = nn.Linear(32, 8)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    saves = 0
    for step in range(4000):
        x = torch.randn(32, 32)
        with torch.no_grad():
            goal = teacher(x)
        loss = nn.functional.mse_loss(model(x), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 1300:
            os.kill(os.getpid(), signal.SIGTERM)
        if step == 2700:
            subprocess.run(["kill", "-TERM", str(os.getpid())], check=True)
        if requested:
            requested = False
            torch.save(model.state_dict(), io.BytesIO())
            saves += 1
            print(f"checkpoint {saves} on request", flush=True)
        if step % 500 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)
    print(f"finished after {saves} requested checkpoints")


if __name__ == "__main__":
    main()
