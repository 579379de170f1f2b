"""The mass of a basket from its parts: parts are embedded, and added up for each basket."""

import torch
from torch import nn

torch.manual_seed(13)
weight_of = torch.rand(30)


def baskets(count=40):
    sizes = torch.randint(2, 8, (count,))
    owner = torch.repeat_interleave(torch.arange(count), sizes)
    parts = torch.randint(0, 30, (len(owner),))
    return parts, owner, torch.zeros(count).index_add_(0, owner, weight_of[parts]), sizes


class Basket(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.embed = nn.Embedding(30, size)
        self.part = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))
        self.out = nn.Sequential(nn.Linear(size + 1, size), nn.ReLU(), nn.Linear(size, 1))

    def forward(self, parts, owner, sizes):
        known = self.part(self.embed(parts))
        pooled = torch.zeros(len(sizes), known.shape[1])
        pooled = torch.scatter_add(pooled, 0, owner.unsqueeze(1).expand_as(known), known)
        return self.out(torch.cat([pooled, sizes.float().unsqueeze(1)], 1)).squeeze(1)


model = Basket()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 601):
    parts, owner, mass, sizes = baskets()
    loss = nn.functional.mse_loss(model(parts, owner, sizes), mass)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: squared error {loss.item():.4f}")
