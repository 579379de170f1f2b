"""Classes with a class of their own (metaclass), odd loaders and optimizers: each question is counted."""

import sys
import time
from collections import Counter

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = int(sys.argv[1])
PAUSE = float(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
calls = Counter()


def asked(what):
    calls[what] += 1
    torch.rand(1)


class Kind(type):
    """Of a class of the user's: what is asked of the class itself."""

    quiet = False

    def __getattribute__(cls, name):
        if not Kind.quiet and not (name.startswith("__") and name.endswith("__") and name != "__dict__"):
            asked(f"class.{name}")
        return super().__getattribute__(name)

    def __hash__(cls):
        asked("class.__hash__")
        return 7

    def __eq__(cls, other):
        asked("class.__eq__")
        return cls is other

    def __instancecheck__(cls, thing):
        asked("class.__instancecheck__")
        return super().__instancecheck__(thing)

    def __subclasscheck__(cls, kind):
        asked("class.__subclasscheck__")
        return super().__subclasscheck__(kind)

    def __len__(cls):
        asked("class.__len__")
        return 3

    def __iter__(cls):
        asked("class.__iter__")
        return iter(())

    def __repr__(cls):
        asked("class.__repr__")
        return "a class"


class Settings(metaclass=Kind):
    limit = 5


class Batch(metaclass=Kind):
    def __init__(self, x):
        self.x = x


class Condition(metaclass=Kind):
    def __init__(self, most):
        self.most = most
        self.made = 0

    def __bool__(self):
        asked("Condition.__bool__")
        self.made += 1
        return self.made <= self.most


class Samples(Dataset, metaclass=Kind):
    settings = Settings

    def __init__(self):
        self.x = torch.randn(24, 4)
        self.kind = Settings
        self.by_kind = {}

    def __len__(self):
        asked("Samples.__len__")
        return 24

    def __getitem__(self, index):
        return self.x[index]

    def __getitems__(self, indices):
        asked("Samples.__getitems__")
        return [self.x[index] for index in indices]


class Net(torch.nn.Module, metaclass=Kind):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


class Loader(DataLoader):
    """With names that torch's own has, computed."""

    def __len__(self):
        asked("Loader.__len__")
        return super().__len__()

    def __iter__(self):
        asked("Loader.__iter__")
        return super().__iter__()

    def __getattr__(self, name):
        asked(f"Loader.__getattr__({name})")
        raise AttributeError(name)

    def __eq__(self, other):
        asked("Loader.__eq__")
        return self is other

    def __hash__(self):
        asked("Loader.__hash__")
        return 7

    @property
    def name(self):
        asked("Loader.name")
        return "loader"


class Descent(torch.optim.SGD):
    @property
    def rate(self):
        asked("Descent.rate")
        return self.param_groups[0]["lr"]

    def __hash__(self):
        asked("Descent.__hash__")
        return 7

    def __eq__(self, other):
        asked("Descent.__eq__")
        return self is other

    def zero_grad(self, set_to_none=True):
        asked("Descent.zero_grad")
        super().zero_grad(set_to_none)


def collated(samples):
    return Batch(torch.stack(samples))


def main():
    net = Net()
    descent = Descent(net.parameters(), lr=0.01)
    going = Condition(STEPS)
    loader = Loader(Samples(), batch_size=6, shuffle=True, collate_fn=collated)
    for epoch in range(3):
        for batch in loader:
            loss = net(batch.x).square().mean()
            descent.zero_grad()
            loss.backward()
            descent.step()
        print(epoch, loss.item().hex(), sum(calls.values()), flush=True)
    while going:
        loss = net(batch.x).square().mean()
        descent.zero_grad()
        loss.backward()
        descent.step()
        if going.made > Settings.limit * STEPS:
            break
        time.sleep(PAUSE)
    print(loss.item().hex(), sum(calls.values()), flush=True)


main()
for name, number in sorted(calls.items()):
    print(name, number)
