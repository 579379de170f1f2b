"""Every kind of loader, with and without workers: what the dataset sees and what comes out."""

import gc
import random
import sys
import threading
import time

import numpy as np
import torch
from common import show_loss, show_random_states, show_surroundings, show_weights
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, get_worker_info, random_split

torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.3  # seconds to wait for a worker after one has failed; torch: 5


class Noisy(Dataset):
    """Its samples depend on every random state, and say what they were asked for."""

    def __len__(self):
        return 24

    def __getitem__(self, i):
        if type(i) is not int:
            raise TypeError(f"asked for {i!r}, a {type(i).__name__}")
        return torch.randn(4) + i + random.random() + float(np.random.rand()) * (get_worker_info() is None)


class Named(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, key):
        return torch.tensor([float(ord(letter)) for letter in key]), key, type(key).__name__


class Whole(Noisy):
    """Draws batches itself."""

    def __getitems__(self, indices):
        assert type(indices) is list, type(indices)
        return [torch.tensor([float(i)]) for i in indices]


class Around:
    """A wrapper that knows nothing of what it wraps."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, i):
        return self.inner[i]


class Lists(Dataset):
    """With batch_size=None a list is one index."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return type(index).__name__, index


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, pace = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(start, 21, pace):
            yield torch.randn(2) + i


class Failing(Noisy):
    def __init__(self, kind, *arguments):
        self.kind, self.arguments = kind, arguments

    def __getitem__(self, i):
        if i == 5:
            raise self.kind(*self.arguments)
        return super().__getitem__(i)


class TupleSampler:
    def __len__(self):
        return 3

    def __iter__(self):
        yield (0, 1, 2)
        yield (3,)
        yield (4, 5)


class PairError(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def seed_worker(number):
    random.seed(torch.initial_seed() % 2**32 + number)
    np.random.seed(number)


def train(loader, name):
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(2):
        for x in loader:
            loss = model(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            show_loss(name, loss)
    show_weights(name, model)


def show(name, loader):
    for batch in loader:
        print(name, type(batch).__name__, [float(b.double().sum()).hex() if torch.is_tensor(b) else b for b in batch])


def frames_of_ours(line):
    return "unstuck" in line or line.strip() in ("batch = original(self, given)", "batch = original(self)")


def show_failure(name, loader):
    try:
        for _ in loader:
            pass
    except Exception as error:
        text = [line for line in str(error).splitlines() if not frames_of_ours(line) and "^^^" not in line]
        print(name, type(error).__name__, error.args and len(error.args), "\n".join(text))
    gc.collect()  # an iterator left in the traceback would be torn down in the next fork


def main(workers, method):
    torch.manual_seed(11), random.seed(11), np.random.seed(11)
    show_surroundings(__file__)
    some = {"num_workers": workers, "worker_init_fn": seed_worker if workers else None}
    if workers:
        some["multiprocessing_context"] = method
    if workers:
        train(DataLoader(Noisy(), batch_size=5, shuffle=True, persistent_workers=True, **some), "persistent")
    if method != "fork":
        return
    train(DataLoader(Noisy(), batch_size=5, shuffle=True, **some), "plain")
    show("stream", DataLoader(Stream(), batch_size=4, **some))
    show("short stream", DataLoader(Stream(), batch_size=4, drop_last=True, **some))
    show("tuples", DataLoader(Noisy(), batch_sampler=TupleSampler(), **some))
    show("sampler", DataLoader(Noisy(), batch_sampler=BatchSampler(range(6), 4, False), **some))
    show("keys", DataLoader(Named(), batch_size=2, sampler=["ab", "cd", "ef", "gh"], **some))
    show("whole", DataLoader(Whole(), batch_size=7, **some))
    show("around whole", DataLoader(Around(Whole()), batch_size=7, **some))
    show("around", DataLoader(Around(Noisy()), batch_size=7, **some))
    show("split", DataLoader(random_split(Noisy(), [10, 14])[0], batch_size=4, **some))
    show("lists", DataLoader(Lists(), batch_size=None, sampler=[[1, 2], [3], []], **some))
    show("unbatched", DataLoader(Noisy(), batch_size=None, **some))
    show("unbatched stream", DataLoader(Stream(), batch_size=None, **some))
    show_failure("fails", DataLoader(Failing(ValueError, "sample 5 is bad"), batch_size=4, **some))
    show_failure("fails oddly", DataLoader(Failing(PairError, 1, 2), batch_size=4, **some))
    show_failure("key error", DataLoader(Failing(KeyError, "five"), batch_size=4, **some))
    show_failure("stops", DataLoader(Failing(StopIteration), batch_size=4, **some))
    thread = threading.Thread(target=show, args=("thread", DataLoader(Noisy(), batch_size=8, **some)))
    thread.start()
    thread.join()
    left = DataLoader(Noisy(), batch_size=2, **some)
    print("left early", float(next(iter(left)).sum()).hex())
    del left
    gc.collect()
    for _ in range(200):  # the feeders of its queues need a moment to end
        if threading.active_count() > 1:
            time.sleep(0.05)
    show_random_states()
    show_surroundings(__file__)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
