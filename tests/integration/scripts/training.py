"""Many ways to train without a loader in another process, each with its losses to the last bit."""

import io
import os
import pickle
import random
import signal
import sys
import threading

import numpy as np
import torch
from common import show_loss, show_random_states, show_surroundings, show_weights
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Points(Dataset):
    def __init__(self, n=48):
        self.x = torch.randn(n, 8)
        self.y = self.x.sum(1, keepdim=True).sin()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + 0.01 * torch.randn(8) + random.random() + float(np.random.rand()), self.y[i]


class Asking(Points):
    """A person presses Ctrl-C while sample 20 is drawn."""

    def __getitem__(self, i):
        if i == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return super().__getitem__(i)


class Failing(Points):
    def __getitem__(self, i):
        if i == 9:
            raise LookupError(f"sample {i} is missing")
        return super().__getitem__(i)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.two(self.act(self.one(x)))


def plain(data):
    model, opt = Net(), None
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(15):
        for x, y in DataLoader(data, batch_size=8, shuffle=True):
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            show_loss("plain", loss)
    show_weights("plain", model)


def two_optimizers(data):
    model = Net()
    first = torch.optim.SGD(model.one.parameters(), lr=1e-2, momentum=0.9)
    second = torch.optim.AdamW(model.two.parameters(), lr=1e-2)
    for x, y in DataLoader(data, batch_size=8):
        loss = nn.functional.mse_loss(model(x), y)
        first.zero_grad(), second.zero_grad()
        loss.backward()
        first.step(), second.step()
        show_loss("two optimizers", loss)
    show_weights("two optimizers", model)


def lbfgs(data):
    model = Net()
    opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = next(iter(DataLoader(data, batch_size=32)))

    def closure():
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        show_loss("closure", loss)
        return loss

    for _ in range(3):
        show_loss("lbfgs", opt.step(closure))
    show_weights("lbfgs", model)


def accumulation(data):
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for number, (x, y) in enumerate(DataLoader(data, batch_size=4)):
        loss = nn.functional.mse_loss(model(x), y) / 3
        loss.backward()
        if number % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        show_loss("accumulation", loss)
    show_weights("accumulation", model)


def checkpointing(data):
    for reentrant in (True, False):
        model = Net()
        first = nn.Sequential(model.one, nn.Dropout())
        opt = torch.optim.SGD(model.parameters(), lr=1e-2)
        for x, y in DataLoader(data, batch_size=16):
            hidden = checkpoint(first, x.requires_grad_(), use_reentrant=reentrant)
            loss = nn.functional.mse_loss(model.two(hidden), y)
            loss.backward()
            opt.step()
            show_loss("checkpointing", loss)
        show_weights("checkpointing", model)


def direct_backward(data):
    model = Net()
    x, y = data.x, data.y
    losses = [nn.functional.mse_loss(model(x), y), model(x).abs().mean()]
    torch.autograd.backward(losses, [torch.tensor(1.0), torch.tensor(0.5)])
    loss = nn.functional.mse_loss(model(x), y)
    torch.autograd.backward(loss, retain_graph=True, inputs=list(model.one.parameters()))
    torch.autograd.backward(tensors=(loss,), grad_tensors=None)
    (slope,) = torch.autograd.grad(model(x).sum(), [model.one.weight], create_graph=True)
    slope.pow(2).sum().backward()
    print("direct", [float(p.grad.sum()).hex() for p in model.parameters()])
    try:
        loss.detach().backward()
    except RuntimeError as error:
        print("refused", str(error).splitlines()[0])


def functional(data):
    model = Net()
    model.act = nn.Tanh()
    weights = dict(model.named_parameters())

    def loss_of(weights, x, y):
        return nn.functional.mse_loss(torch.func.functional_call(model, weights, (x,)), y)

    for _ in range(3):
        grads, loss = torch.func.grad_and_value(loss_of)(weights, data.x, data.y)
        weights = {name: weight - 0.1 * grads[name] for name, weight in weights.items()}
        show_loss("functional", loss)
    each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(weights, data.x[:4], data.y[:4])
    print("per sample", [float(g.double().sum()).hex() for g in each.values()])


@torch.jit.script
def scripted_loss(prediction: torch.Tensor, target: torch.Tensor, power: int = 2) -> torch.Tensor:
    loss = torch.zeros(1)
    for _ in range(power):
        loss = loss + (prediction - target).pow(2).mean()
    return loss / power


def calls_backward(x: torch.Tensor) -> torch.Tensor:
    loss = x.pow(2).sum()
    torch.autograd.backward([loss])
    loss = x.pow(3).sum()
    loss.backward()
    return loss


def scripted(data):
    model = torch.jit.script(Net())
    traced = torch.jit.trace(Net(), data.x)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in DataLoader(data, batch_size=16):
        loss = scripted_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        show_loss("scripted", loss)
    show_weights("scripted", model)
    show_loss("traced", traced(data.x).sum())
    x = torch.ones(3, requires_grad=True)
    show_loss("scripted backward", torch.jit.script(calls_backward)(x))
    print("scripted backward", x.grad)


def pickles(data):
    model = Net()
    opt = torch.optim.Adam(model.parameters())
    model(data.x).sum().backward()
    opt.step()
    buffer = io.BytesIO()
    torch.save({"model": model, "opt": opt.state_dict(), "data": data}, buffer)
    buffer.seek(0)
    show_weights("saved", torch.load(buffer, weights_only=False)["model"])
    loader = DataLoader(TensorDataset(data.x, data.y), batch_size=16)
    next(iter(loader))
    print(
        "pickle",
        [len(pickle.dumps(thing)) for thing in (data, loader, model, opt, torch.autograd.backward, DataLoader)],
    )
    copied = pickle.loads(pickle.dumps(loader))
    print("copied", [float(x.sum()).hex() for x, _ in copied])


def in_a_thread(data):
    def work():
        for x, _ in DataLoader(data, batch_size=16, generator=torch.Generator().manual_seed(3), shuffle=True):
            show_loss("thread", x.sum())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def interrupted(_data):
    asking = Asking()
    seen = 0
    try:
        for x, _ in DataLoader(asking, batch_size=8):
            seen += len(x)
    except KeyboardInterrupt:
        print("interrupted after", seen)
    weight = torch.ones(1, requires_grad=True)
    loss = (weight * 2).sum()
    loss.register_hook(lambda _: os.kill(os.getpid(), signal.SIGINT))
    try:
        loss.backward()
        print("late")
    except KeyboardInterrupt:
        print("interrupted in backward", weight.grad is not None)
    opt = torch.optim.SGD([weight], lr=0.1)

    def closure():
        raise KeyboardInterrupt

    try:
        opt.step(closure)
    except KeyboardInterrupt:
        print("interrupted in step")
    previous = signal.signal(signal.SIGINT, lambda *_: print("handled"))
    os.kill(os.getpid(), signal.SIGINT)
    print(
        "handler", signal.signal(signal.SIGINT, previous) is not previous, signal.getsignal(signal.SIGINT) is previous
    )


def failing(_data):
    failing = Failing()
    try:
        for _ in DataLoader(failing, batch_size=4):
            pass
    except LookupError as error:
        print("failed", type(error).__name__, error, error.__cause__, error.__context__)


def main():
    torch.manual_seed(7), random.seed(7), np.random.seed(7)
    show_surroundings(__file__)
    data = Points()
    for part in (
        plain, two_optimizers, lbfgs, accumulation, checkpointing, direct_backward,
        functional, scripted, pickles, in_a_thread, interrupted, failing,
    ):  # fmt: skip
        part(data)
    show_random_states()
    show_surroundings(__file__)


if __name__ == "__main__":
    main()
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
