"""A stream has neither an end nor a length. `unstuck.bounded` cuts it into passes, by batches or by time, for training
and for validation; no `next()`, no `StopIteration`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

import unstuck


class Readings(IterableDataset):
    def __iter__(self):
        while True:
            values = torch.randn(10)
            yield values, (values.sum() > 0).long()


torch.manual_seed(0)
train = unstuck.bounded(DataLoader(Readings(), batch_size=32), max_batches=50)
check = unstuck.bounded(DataLoader(Readings(), batch_size=256), max_batches=4, max_seconds=60)
model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(1, 4):
    for batch, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
    with torch.no_grad():
        right = [(model(batch).argmax(1) == labels).float().mean() for batch, labels in check]
    accuracy = torch.stack(right).mean().item()
    print(f"epoch {epoch}: accuracy {accuracy:.2f} on {len(right)} batches")
assert train.stopped == "max_batches"
assert accuracy > 0.9
