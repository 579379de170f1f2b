import multiprocessing

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(loader, epochs=2):
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


torch.manual_seed(0)
x = torch.randn(60, 3)
y = x.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=10, num_workers=1,
                    multiprocessing_context=multiprocessing.get_context("spawn"))
train(loader)
