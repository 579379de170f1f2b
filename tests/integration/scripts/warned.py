"""Gets warnings of torch that name the caller's line: schedulers stepped too early, and with an epoch."""

import torch

net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, 2)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    sched.step()
    opt.step()
sched.step(3)
