"""The compiler must see through every hook: whole graphs, a compiled optimizer step, a compiled train step."""

import os
import random
import sys
import tempfile

import numpy as np
import torch
from common import show_loss, show_random_states, show_weights
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))


def batches(loader):
    """Enough of them that the recorder comes to its steady state."""
    for _ in range(25):
        yield from loader


def main(backend):
    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    x = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)

    model = make()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = torch.compile(opt.step, backend=backend)  # torch itself breaks its graph once
    for batch, target in batches(loader):
        loss = nn.functional.mse_loss(compiled(batch), target)
        opt.zero_grad()
        loss.backward()
        step()
        show_loss("compiled", loss)
    show_weights("compiled", model)

    model = make()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)

    @torch.compile(fullgraph=True, backend=backend)
    def forward(batch, target):
        return nn.functional.mse_loss(model(batch), target)

    @torch.compile(backend=backend)
    def train_step(batch, target):
        opt.zero_grad()
        loss = forward(batch, target)
        loss.backward()
        opt.step()
        return loss

    for batch, target in batches(loader):
        show_loss("train step", train_step(batch, target))
    show_weights("train step", model)

    @torch.compile(backend=backend)
    def epoch():
        """Compiled with the loop, which breaks its graph at every batch."""
        for batch, target in loader:
            loss = nn.functional.mse_loss(model(batch), target)
            opt.zero_grad()
            torch.autograd.backward(loss)
            opt.step()
        return loss

    show_loss("epoch", epoch())
    show_loss("epoch", epoch())
    show_weights("epoch", model)

    @torch.compile(fullgraph=True, backend=backend)
    def slope(weight, batch):
        return torch.func.grad(lambda w: (batch @ w).pow(2).mean())(weight)

    print("slope", [value.hex() for value in slope(torch.ones(8), x).tolist()])
    counters = torch._dynamo.utils.counters
    print("graphs", dict(counters["stats"]), "breaks", sum(counters["graph_break"].values()))
    if backend == "eager":
        # With another one the hook after the step, to which the optimizer is given, makes one frame more of each.
        print("frames", dict(counters["frames"]))
    show_random_states()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:  # the second run must compile as the first did
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        main(sys.argv[1])
