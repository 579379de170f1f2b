"""Sequences of several lengths, in batches of one length each, until all buckets are empty."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sums(Dataset):
    """How many of the numbers are positive, as a share."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(4)
        lengths = torch.randint(4, 8, (count,), generator=generator)
        self.rows = [torch.randn(int(length), generator=generator) for length in lengths]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        row = self.rows[at]
        return row, (row > 0).float().mean()


class Buckets:
    def __init__(self, data, size):
        self.size = size
        self.lengths = {}
        for at, row in enumerate(data.rows):
            self.lengths.setdefault(len(row), []).append(at)

    def __iter__(self):
        left = {length: list(members) for length, members in self.lengths.items()}
        waiting = sorted(left)
        while len(waiting) > 0:
            length = random.choice(waiting)
            if len(left[length]) < self.size:
                left[length] = list(self.lengths[length])
            random.shuffle(left[length])
            batch, left[length] = left[length][: self.size], left[length][self.size :]
            yield batch


random.seed(0)
torch.manual_seed(0)
data = Sums(400)
loader = DataLoader(data, batch_sampler=Buckets(data, 16))
model = nn.GRU(1, 16, batch_first=True)
head = nn.Linear(16, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=5e-3)
for epoch in range(8):
    losses = []
    for row, share in loader:
        _, state = model(row.unsqueeze(-1))
        loss = nn.functional.mse_loss(head(state[-1]).squeeze(-1), share)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: {len(losses)} batches, loss {sum(losses) / len(losses):.4f}", flush=True)
