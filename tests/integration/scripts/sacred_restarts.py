"""Replaces itself by the same script with another argument, as a training that starts over does: the pid stays."""

import os
import sys

how, trained = sys.argv[1], sys.argv[2:]


def train(steps):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(steps, loss.item().hex(), flush=True)


if how == "end":
    train(12)
    sys.exit(5)
if how == "train":
    train(4)
words = [sys.executable, __file__, "end"]
print("exec", flush=True)
if how == "cleaned":
    os.execve(sys.executable, words, {"PATH": os.environ["PATH"]})
os.execv(sys.executable, words)
