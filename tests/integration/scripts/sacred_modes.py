"""Modes of the user's around whole steps: each operation they see is counted, and which ones they were is printed."""

import sys
from hashlib import sha1

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(sys.argv[1])
torch.manual_seed(0)
torch.set_num_threads(1)


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.seen.append(str(function))
        return function(*arguments, **(options or {}))


class Called(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, arguments=(), options=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*arguments, **(options or {}))


traced = []


class Traced(torch.Tensor):
    """A tensor that hears of everything done with it."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        traced.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, arguments, options or {})


def told(where, seen):
    """How many, a mark of what they were, and the first of them where it is a short list."""
    print(where, len(seen), sha1(" ".join(seen).encode()).hexdigest()[:12], *(seen if len(seen) < 60 else ()))


def batches():
    x = torch.randn(64, 4)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)


def train(where, steps, mode=None, around_all=False):
    """`mode` is around each step, or around the whole loop with its batches."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = batches()
    made = 0
    seen = mode.seen if mode is not None else traced
    if around_all:
        mode.__enter__()
    while made < steps:
        for x, y in loader:
            if mode is None:
                x, y = x.as_subclass(Traced), y.as_subclass(Traced)
            elif not around_all:
                mode.__enter__()
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if mode is not None and not around_all:
                mode.__exit__(None, None, None)
            made += 1
            told(f"{where} {made}", seen)
            seen.clear()
    if around_all:
        mode.__exit__(None, None, None)
    print(where, loss.detach().as_subclass(torch.Tensor).item().hex(), flush=True)


for steps in (30, STEPS):  # both among the first 64 steps, which are watched closely, and later
    train("dispatched", steps, Dispatched())
    train("called", steps, Called())
train("dispatched, all of it", STEPS // 4, Dispatched(), around_all=True)
train("called, all of it", STEPS // 4, Called(), around_all=True)
train("traced", STEPS // 4)
torch.set_default_device("cpu")
train("dispatched, on a default device", STEPS // 8, Dispatched())
train("called, on a default device", STEPS // 8, Called())
