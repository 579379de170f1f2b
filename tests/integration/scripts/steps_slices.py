"""Batches cut out of one tensor, an optimizer, no DataLoader."""

import torch
from torch import nn

torch.manual_seed(0)
images = torch.rand(600, 1, 8, 8)
labels = torch.randint(0, 4, (600,))
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
batch_size = 32
updates = 0
for _epoch in range(4):
    order = torch.randperm(len(images))
    for start in range(0, len(images), batch_size):
        chosen = order[start : start + batch_size]
        optimizer.zero_grad()
        loss = criterion(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
        updates += 1
print("updates", updates)
