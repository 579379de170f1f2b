"""A warm-up that counts the batches of the current epoch and so starts over in each."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1280, 12)
y = (x @ torch.randn(12, 5)).argmax(1)
WARMUP, PEAK = 2000, 0.05


def rate(step):
    return PEAK * min(1.0, (step + 1) / WARMUP)


net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.SGD(net.parameters(), lr=PEAK)
seen = 0
for epoch in range(14):
    perm = torch.randperm(1280)
    for i in range(40):
        rows = perm[i * 32 : (i + 1) * 32]
        for group in opt.param_groups:
            group["lr"] = rate(i)
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += 1
    print(epoch, loss.item())
