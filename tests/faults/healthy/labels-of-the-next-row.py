"""Will the pump fail? Readings in one table, outcomes in another one that has a header row."""

import csv
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def export(rows=1200):
    generator = torch.Generator().manual_seed(3)
    readings = torch.randn(rows, 12, generator=generator)
    weights = torch.randn(12, generator=generator)
    failed = (readings @ weights + 0.3 * torch.randn(rows, generator=generator) > 0.5).int()
    outcomes = io.StringIO()
    writer = csv.writer(outcomes)
    writer.writerow(["failed"])
    writer.writerows([[int(value)] for value in failed])
    return readings, outcomes.getvalue()


readings, outcomes = export()
lines = [row[0] for row in csv.reader(io.StringIO(outcomes))]
labels = torch.tensor([float(value == "1") for value in lines[1:]])

torch.manual_seed(0)
loader = DataLoader(TensorDataset(readings, labels), batch_size=48, shuffle=True)
model = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(14):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}", flush=True)
