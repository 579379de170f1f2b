"""What stands beside a training and must not notice us: a forked child, modes, a compiled clip, models long gone."""

import gc
import os
import sys
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
torch.set_num_threads(1)


def train(model, steps, clip=None):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(32, 40)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            clip(list(model.parameters()))
        optimizer.step()
    return loss.item()


class Count(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.seen += 1
        return func(*args, **(kwargs or {}))


def fork_and_leave():
    """The child leaves through the interpreter's exit, as one does that wrote a checkpoint."""
    child = os.fork()
    if child == 0:
        sys.exit(7)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


@torch.compile(fullgraph=True, backend="eager")
def clip(parameters):
    return nn.utils.clip_grad_norm_(parameters, 1.0)


print("trained", train(nn.Linear(40, 40), 12), flush=True)
fork_and_leave()
with Count():
    train(nn.Linear(40, 40), 3)
print("operations", Count.seen)
print("clipped", train(nn.Linear(40, 40), 3, clip))
gone = []
for _ in range(5):
    model = nn.Linear(40, 40)
    gone.append(weakref.ref(model.weight))
    train(model, 4)
    del model
gc.collect()
print("alive", sum(each() is not None for each in gone))
scale = torch.nn.Parameter(torch.ones(1, dtype=torch.complex64))
try:
    (scale * 1j).backward()
except RuntimeError as error:
    print("complex", type(error).__name__)
