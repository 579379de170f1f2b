"""A plain loop over a DataLoader ends with the data: five epochs are five passes. Printed is the mean of the epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import unstuck

torch.manual_seed(0)
inputs = torch.randn(100, 10)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=32, shuffle=True)
model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
progress = unstuck.Plateau(optimizer)

for epoch in range(1, 6):
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        progress.add(loss, len(batch))  # the last batch has four samples, and counts as four
    progress.end_epoch()
    print(f"epoch {epoch}: mean loss {progress.mean:.4f}, last batch {loss.item():.4f}")
assert progress.epoch == 5
