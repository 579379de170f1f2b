"""OneCycleLR stepped every batch, with a conv net on 1-d signals."""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def make_signals(n, length=64):
    """Sine, square, triangle and noise waves of random phase and period."""
    y = torch.randint(0, 4, (n,))
    t = torch.arange(length).float()
    period = 10 + 20 * torch.rand(n, 1)
    s = torch.sin(2 * math.pi * (t / period + torch.rand(n, 1)))
    kinds = torch.stack([s, s.sign(), torch.asin(s * 0.999) * 2 / math.pi, torch.randn(n, length)], 1)
    return kinds[torch.arange(n), y].unsqueeze(1) + 0.2 * torch.randn(n, 1, length), y


x, y = make_signals(2048)
model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(32, 4),
)
EPOCHS, BATCH = 14, 64
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=math.ceil(len(x) / BATCH)
)
criterion = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total, correct = 0.0, 0
    for idx in torch.randperm(len(x)).split(BATCH):
        out = model(x[idx])
        loss = criterion(out, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
        correct += (out.argmax(1) == y[idx]).sum().item()
    lr = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch} lr {lr:.2e} loss {total / len(x):.4f} acc {correct / len(x):.3f}")
