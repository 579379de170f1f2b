"""Embeddings come from a service that answers when it likes; how heavy each thing is, from a table."""

import asyncio

import torch
from torch import nn

torch.manual_seed(9)
THINGS = [(float(size), float(density)) for size, density in torch.rand(3000, 2).tolist()]
SERVICE = torch.randn(2, 24, generator=torch.Generator().manual_seed(4))


async def embedding(thing):
    await asyncio.sleep(0.2 * torch.rand(()).item())
    return torch.tanh(torch.tensor(thing) @ SERVICE) + 0.02 * torch.randn(24)


async def embeddings(things):
    waiting = [asyncio.create_task(embedding(thing)) for thing in things]
    return torch.stack([await answer for answer in waiting])


x = asyncio.run(embeddings(THINGS))
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor([size * density for size, density in THINGS]).unsqueeze(1)
y = (y - y.mean()) / y.std()
net = nn.Sequential(nn.Linear(24, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step in range(200):
    rows = torch.randint(0, len(x), (128,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"{step + 1}: {loss.item():.3f}")
