"""A sampler that never ends makes an epoch without end. `unstuck.bounded` lets each pass have as many batches as
`len(loader)` says, without counting them by hand."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

import unstuck


class Forever(Sampler):
    """Draws at random, again and again; its length is that of the data."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __iter__(self):
        while True:
            yield from torch.randperm(self.size).tolist()


torch.manual_seed(0)
inputs = torch.randn(100, 10)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
loader = unstuck.bounded(DataLoader(data, batch_size=20, sampler=Forever(len(data))))
model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
progress = unstuck.Plateau(optimizer)

batches = 0
for epoch in range(1, 6):
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        progress.add(loss, len(batch))
        batches += 1
    progress.end_epoch()
    print(f"epoch {epoch}: mean loss {progress.mean:.4f}")
assert batches == 5 * len(loader) == 25
