"""A training that hangs, ignores every polite signal, and has a child that does too."""

import signal
import subprocess
import sys
import threading

import torch

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
weight = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=0.1)
for _ in range(20):
    opt.zero_grad()
    weight.sum().backward()
    opt.step()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print("child", child.pid, flush=True)
lock = threading.Lock()
lock.acquire()
lock.acquire()
