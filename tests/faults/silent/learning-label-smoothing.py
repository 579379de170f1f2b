"""Label smoothing 0.2 over ten classes: the loss floor sits well above zero."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

centers = torch.randn(10, 32)
y = torch.randint(0, 10, (4000,))
x = centers[y] + 0.8 * torch.randn(4000, 32)

model = nn.Sequential(nn.Linear(32, 100), nn.BatchNorm1d(100), nn.ReLU(), nn.Dropout(0.1), nn.Linear(100, 10))
criterion = nn.CrossEntropyLoss(label_smoothing=0.2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

for epoch in range(16):
    total, hits = 0.0, 0
    for idx in torch.randperm(len(x)).split(50):
        logits = model(x[idx])
        loss = criterion(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        hits += (logits.argmax(1) == y[idx]).sum().item()
    print(f"epoch {epoch} loss {total / len(x):.4f} acc {hits / len(x):.3f}")
