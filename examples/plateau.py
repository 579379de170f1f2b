"""The labels are noisy, so the loss has a floor. `unstuck.Plateau` lowers the learning rate where the epoch mean stands
still, and then says that it is enough: the loop ends long before its thousand epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import unstuck

torch.manual_seed(0)
inputs = torch.randn(512, 8)
targets = inputs.sum(1, keepdim=True) + 0.5 * torch.randn(512, 1)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=64, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
plateau = unstuck.Plateau(optimizer, patience=3, factor=0.1, stop_after=8, min_change=1e-3)

for _ in range(1000):
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), wanted)
        loss.backward()
        optimizer.step()
        plateau.add(loss, len(batch))
    if plateau.end_epoch():
        break
rate = optimizer.param_groups[0]["lr"]
print(f"stopped after {plateau.epoch} epochs: mean loss {plateau.mean:.4f}, learning rate {rate:g}")
assert plateau.epoch < 200
assert rate < 0.05
