"""Trains for as long as the validation loss gets better: two seconds without a better one end it. The time of the last
print is another clock, set anew every 200 steps."""

import time

import torch
from torch import nn

PATIENCE = 2.0

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(2000, 10)
y = torch.sin(x @ torch.randn(10, 3)) + 0.1 * torch.randn(2000, 3)
net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9993)
best, step = float("inf"), 0
better = printed = time.monotonic()
while time.monotonic() - better < PATIENCE:
    rows = torch.randint(0, 1600, (64,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    step += 1
    if step % 50 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(net(x[1600:]), y[1600:]).item()
        if val < best * 0.999:
            best, better = val, time.monotonic()
    if step % 200 == 0:
        print(f"step {step}: best {best:.4f}, {200 / (time.monotonic() - printed):.0f} steps/s", flush=True)
        printed = time.monotonic()
print(f"no better for {PATIENCE:.0f} s after {step} steps", flush=True)
