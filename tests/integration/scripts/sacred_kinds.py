"""Trainings of several kinds, and what is written away of them: compiled, scripted, pickled, in a spawned process."""

import copy
import multiprocessing
import pickle
import sys
from hashlib import sha1

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def loader():
    torch.manual_seed(1)
    x = torch.randn(48, 4)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def train(model, batches, optimizer=None):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        for x, y in batches:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item().hex()


def marked(thing):
    """What it is when written away: anything that was added to it would show."""
    return sha1(pickle.dumps(thing)).hexdigest()[:12]


def pickled():
    model, batches = net(), loader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    loss = train(model, batches, optimizer)
    scheduler.step()
    print("pickled", loss, len(pickle.dumps(optimizer)), len(pickle.dumps(batches)), len(pickle.dumps(model)))
    print("state", marked(optimizer.state_dict()["param_groups"]), marked(scheduler.state_dict()))
    print("names", sorted(vars(optimizer)), sorted(vars(batches)), sorted(vars(model)), sorted(vars(model[0])))
    model, optimizer, batches = pickle.loads(pickle.dumps((model, optimizer, batches)))
    print("read back", train(model, batches, optimizer))
    model, optimizer, batches = copy.deepcopy((model, optimizer, batches))
    print("copied", train(model, batches, optimizer))


def scripted():
    model = torch.jit.script(net())
    print("scripted", train(model, loader()))
    example = torch.zeros(2, 4)
    model = torch.jit.trace(net(), example)
    print("traced", train(model, loader()))


def compiled():
    model = net()
    print("compiled", train(torch.compile(model, backend="eager"), loader()))


def in_child(queue):
    model = net()
    queue.put(train(model, loader()))


def spawned():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    print("spawned", queue.get())
    child.join()
    print("exit", child.exitcode)


if __name__ == "__main__":
    for kind in sys.argv[1:]:
        globals()[kind]()
