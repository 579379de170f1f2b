"""Two batches have a NaN in them, three have targets a thousand times too large: the same training as it is, and with
`unstuck.guard(optimizer)`, which skips the first and scales the others down. No limit is set by hand."""

import math

import torch
from torch import nn

import unstuck


def train(guarded):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    guard = unstuck.guard(optimizer) if guarded else None
    for step in range(400):
        inputs = torch.randn(64, 10)
        targets = inputs.sum(1, keepdim=True)
        if step in (100, 300):
            inputs[3, 5] = math.nan
        if step in (150, 151, 250):
            targets *= 1000
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    inputs = torch.randn(1000, 10)
    with torch.no_grad():
        return nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True)).item(), guard


plain, _ = train(guarded=False)
healed, guard = train(guarded=True)
print(f"as it is: {plain:.4f}\nguarded:  {healed:.4f}  {guard}")
assert math.isnan(plain)
assert healed < 0.1
