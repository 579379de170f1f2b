"""A training stuck on a lock; at Ctrl-C it gives up and ends well."""

import threading

import torch

weight = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=0.1)
for _ in range(20):
    opt.zero_grad()
    weight.sum().backward()
    opt.step()
lock = threading.Lock()
lock.acquire()
print("stuck", flush=True)
try:
    lock.acquire()
except KeyboardInterrupt:
    print("gave up", flush=True)
