"""Everything of the user's that can be asked draws a random number and is counted: a question of ours would show."""

import sys
import time
from collections import Counter, UserDict, namedtuple

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

STEPS = int(sys.argv[1])
PAUSE = float(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
calls = Counter()


def asked(thing, what):
    calls[f"{thing}.{what}"] += 1
    torch.rand(1)


class Reading:
    """A descriptor of the user's own."""

    def __set_name__(self, owner, name):
        self.thing = f"{owner.__name__}.{name}"

    def __get__(self, instance, owner=None):
        if instance is not None:
            asked(self.thing, "__get__")
        return 3


class Asked:
    """Whatever is asked of it is counted; what it holds is under other names than those it is asked by."""

    described = Reading()

    def __len__(self):
        asked(type(self).__name__, "__len__")
        return 24

    def __eq__(self, other):
        asked(type(self).__name__, "__eq__")
        return self is other

    def __hash__(self):
        asked(type(self).__name__, "__hash__")
        return 7

    def __bool__(self):
        asked(type(self).__name__, "__bool__")
        return True

    def __repr__(self):
        asked(type(self).__name__, "__repr__")
        return "something"

    def __str__(self):
        asked(type(self).__name__, "__str__")
        return "something"

    def __contains__(self, item):
        asked(type(self).__name__, "__contains__")
        return False

    def __index__(self):
        asked(type(self).__name__, "__index__")
        return 5

    def __float__(self):
        asked(type(self).__name__, "__float__")
        return 5.0

    def item(self):
        asked(type(self).__name__, "item")
        return 5.0

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        asked(type(self).__name__, f"__getattr__({name})")
        raise AttributeError(name)

    @property
    def size(self):
        asked(type(self).__name__, "size")
        return 24

    shape = dtype = data = targets = batch_size = sampler = dataset = size

    @property
    def __class__(self):
        asked(type(self).__name__, "__class__")
        return type(self)


class Iterated(Asked):
    def __iter__(self):
        asked(type(self).__name__, "__iter__")
        return iter(range(24))


# --- what batches are made of ---


class Words(Iterated):
    """An attribute of the dataset."""


class Table(dict):
    def __len__(self):
        asked("Table", "__len__")
        return super().__len__()

    def __iter__(self):
        asked("Table", "__iter__")
        return super().__iter__()

    def items(self):
        asked("Table", "items")
        return super().items()

    def values(self):
        asked("Table", "values")
        return super().values()

    def __getitem__(self, key):
        asked("Table", "__getitem__")
        return super().__getitem__(key)


class Line(list):
    def __len__(self):
        asked("Line", "__len__")
        return super().__len__()

    def __iter__(self):
        asked("Line", "__iter__")
        return super().__iter__()

    def __getitem__(self, place):
        asked("Line", "__getitem__")
        return super().__getitem__(place)


class Encoded(UserDict):
    def __getitem__(self, key):
        asked("Encoded", "__getitem__")
        return super().__getitem__(key)

    def __len__(self):
        asked("Encoded", "__len__")
        return super().__len__()

    def __iter__(self):
        asked("Encoded", "__iter__")
        return super().__iter__()


class Pair(namedtuple("Pair", "x y")):
    @property
    def both(self):
        asked("Pair", "both")
        return self.x, self.y

    def __iter__(self):
        asked("Pair", "__iter__")
        return super().__iter__()

    def __len__(self):
        asked("Pair", "__len__")
        return super().__len__()


class Batch(Iterated):
    """What collate_fn gives."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.line = Line([x, y])
        self.table = Table(x=x)
        self.encoded = Encoded({"x": x})
        self.pair = Pair(x, y)
        self.words = Words()

    def to(self, *_):
        asked("Batch", "to")
        return self


class Samples(Iterated, Dataset):
    def __init__(self):
        self.x = torch.randn(24, 4)
        self.words = Words()
        self.table = Table(a=1, b=2)
        self.line = Line([1, 2, 3])

    def __getitem__(self, index):
        asked("Samples", "__getitem__")
        return self.x[index], self.x[index].sum()


class Wrapped(Dataset):
    """What it has not itself, it asks the one inside for: also what its length is made of."""

    def __init__(self, inside):
        self.inside = inside

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.inside[index]

    def __getattr__(self, name):
        asked("Wrapped", f"__getattr__({name})")
        return getattr(self.__dict__["inside"], name)


class Stream(Asked, torch.utils.data.IterableDataset):
    """Samples one after the other, and a length that is a guess."""

    def __init__(self):
        self.inside = Samples()

    def __iter__(self):
        asked("Stream", "__iter__")
        return (self.inside[index] for index in range(24))


class Key(Asked):
    """What the sampler draws."""

    def __init__(self, number):
        self.number = number


class Keyed(Samples):
    def __getitem__(self, key):
        return super().__getitem__(key.number)


class Drawing(Asked, Sampler):
    def __init__(self):
        pass

    def __iter__(self):
        asked("Drawing", "__iter__")
        return iter(torch.randperm(24).tolist())


class DrawingKeys(Drawing):
    def __iter__(self):
        return map(Key, super().__iter__())


class DrawingBatches(Drawing):
    def __len__(self):
        asked("DrawingBatches", "__len__")
        return 4

    def __iter__(self):
        order = list(super().__iter__())
        for first in range(0, 24, 6):
            yield order[first : first + 6]


def batch_of(samples):
    return Batch(torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples]))


# --- what learns ---


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 8)
        self.outer = torch.nn.Linear(8, 1)
        self.words = Words()

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x))).squeeze(1)

    def __getattr__(self, name):
        asked("Net", f"__getattr__({name})")
        return super().__getattr__(name)

    def __len__(self):
        asked("Net", "__len__")
        return 2

    def __iter__(self):
        asked("Net", "__iter__")
        return iter(())

    def __repr__(self):
        asked("Net", "__repr__")
        return "Net"

    def __eq__(self, other):
        asked("Net", "__eq__")
        return self is other

    def __hash__(self):
        asked("Net", "__hash__")
        return id(self)

    @property
    def device(self):
        asked("Net", "device")
        return "cpu"

    def state_dict(self, *arguments, **options):
        asked("Net", "state_dict")
        return super().state_dict(*arguments, **options)

    def named_parameters(self, *arguments, **options):
        asked("Net", "named_parameters")
        return super().named_parameters(*arguments, **options)


class Descent(torch.optim.SGD):
    def __repr__(self):
        asked("Descent", "__repr__")
        return "Descent"

    def __len__(self):
        asked("Descent", "__len__")
        return 1

    def __bool__(self):
        asked("Descent", "__bool__")
        return True

    @property
    def lr(self):
        asked("Descent", "lr")
        return self.param_groups[0]["lr"]


class Course(Asked):
    """What a scheduler multiplies by."""

    def __call__(self, epoch):
        asked("Course", "__call__")
        return 1.0 / (1 + epoch / 1000)


class Rate(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        asked("Rate", "get_lr")
        return [group["lr"] * 0.999 for group in self.optimizer.param_groups]

    def get_last_lr(self):
        asked("Rate", "get_last_lr")
        return super().get_last_lr()

    def __getattr__(self, name):
        asked("Rate", f"__getattr__({name})")
        raise AttributeError(name)

    def __repr__(self):
        asked("Rate", "__repr__")
        return "Rate"


class Value(torch.Tensor):
    """A loss of a class of its own."""

    def item(self):
        asked("Value", "item")
        return super().item()

    def __repr__(self):
        asked("Value", "__repr__")
        return "Value"

    def __bool__(self):
        asked("Value", "__bool__")
        return True

    def __float__(self):
        asked("Value", "__float__")
        return 0.0


# --- what loops ask ---


class Tracker(Asked):
    def __init__(self):
        self.steps = 0

    def __lt__(self, other):
        asked("Tracker", "__lt__")
        return self.steps < other.steps

    def __gt__(self, other):
        asked("Tracker", "__gt__")
        return self.steps > other.steps


class Limit(Tracker):
    def __init__(self, steps):
        self.steps = steps


class Stopper(Asked):
    def __init__(self):
        self.seen = 0

    @property
    def stop(self):
        asked("Stopper", "stop")
        return False

    def __call__(self, loss):
        asked("Stopper", "__call__")
        self.seen += loss.dim() == 0
        return False


class Done(Asked):
    def __init__(self):
        self.is_so = False

    def __bool__(self):
        asked("Done", "__bool__")
        return self.is_so


class Meter(Asked):
    def __init__(self):
        self.total = 0.0

    def __add__(self, other):
        asked("Meter", "__add__")
        self.total += other
        return self

    def item(self):
        asked("Meter", "item")
        return self.total


class Rounds(Asked):
    """Iterated by the old protocol: by index, until IndexError."""

    def __getitem__(self, place):
        asked("Rounds", "__getitem__")
        if place >= 3:
            raise IndexError(place)
        return place


class Epochs(Asked):
    """Iterated by its own iterator."""

    def __init__(self):
        self.left = 3

    def __iter__(self):
        asked("Epochs", "__iter__")
        return self

    def __next__(self):
        asked("Epochs", "__next__")
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


def shown(where, loss):
    print(where, loss.detach().as_subclass(torch.Tensor).item().hex(), sum(calls.values()), flush=True)


net = Net()
descent = Descent(net.parameters(), lr=0.01)
rate = Rate(descent)
course = torch.optim.lr_scheduler.LambdaLR(descent, Course())


def step(batch):
    loss = torch.nn.functional.mse_loss(net(batch.x), batch.y).as_subclass(Value)
    descent.zero_grad()
    loss.backward()
    descent.step()
    return loss


def epochs_over(loader, where):
    for epoch in range(2):
        for batch in loader:
            loss = step(batch)
        rate.step()
        shown(f"{where} {epoch}", loss)


epochs_over(DataLoader(Samples(), batch_size=6, shuffle=True, collate_fn=batch_of), "shuffled")
epochs_over(DataLoader(Samples(), batch_size=6, sampler=Drawing(), collate_fn=batch_of), "sampler")
epochs_over(DataLoader(Keyed(), batch_size=6, sampler=DrawingKeys(), collate_fn=batch_of), "keys")
epochs_over(DataLoader(Samples(), batch_sampler=DrawingBatches(), collate_fn=batch_of), "batch sampler")
epochs_over(DataLoader(Wrapped(Samples()), batch_size=6, collate_fn=batch_of), "wrapped")
epochs_over(DataLoader(Stream(), batch_size=6, collate_fn=batch_of), "stream")
epochs_over(DataLoader(Samples(), batch_size=6, num_workers=1, collate_fn=batch_of), "worker")


def odd_loops():
    """Loops over things and conditions of the user's, each long enough to be looked at from outside."""
    samples, meter, done, stopper = Samples(), Meter(), Done(), Stopper()
    tracker, limit = Tracker(), Limit(STEPS)
    batch = batch_of([samples[index] for index in range(6)])
    while tracker < limit:
        loss = step(batch)
        meter = meter + 0.001
        tracker.steps += 1
        if stopper.stop or stopper(loss):
            break
        if tracker > limit:
            return
        time.sleep(PAUSE)
    shown("while a < b", loss)
    while not done:
        loss = step(batch)
        tracker.steps += 1
        if tracker.steps >= 2 * STEPS:
            done.is_so = True
        if stopper.stop is True and done:
            break
        time.sleep(PAUSE)
    shown("while not done", loss)
    most = meter.total + 0.001 * STEPS
    while meter.item() < most:
        loss = step(batch)
        meter = meter + 0.001
        time.sleep(PAUSE)
    shown("while item()", loss)
    for number in Rounds():
        for _ in Epochs():
            for again, _ in enumerate(samples):
                loss = step(batch)
                if again > STEPS // 9:
                    break
                time.sleep(PAUSE)
            course.step()
        shown(f"rounds {number}", loss)


odd_loops()
for name, number in sorted(calls.items()):
    print(name, number)
