"""Two threads read samples, tuples in the making, while a training goes on and meets new modules."""

import threading

import torch
from torch.utils.data import TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
dataset = TensorDataset(*(torch.randn(64, 4) for _ in range(8)))
rows = torch.arange(512) % 64
stop = threading.Event()
broken = []


def read():
    while not stop.is_set():
        try:
            dataset[rows]
        except BaseException as error:
            broken.append(f"{type(error).__name__}: {error}")


readers = [threading.Thread(target=read) for _ in range(2)]
for reader in readers:
    reader.start()
x, y = torch.randn(16, 4), torch.randn(16, 1)
for layers in (1, 8):
    parts = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(layers)]
    model = torch.nn.Sequential(*parts, torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(layers, loss.item().hex())
stop.set()
for reader in readers:
    reader.join()
print("broken", broken)
