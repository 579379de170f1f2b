"""Rows of a table in the order they were written, some at a time, until the cursor is at the end."""

import torch
from torch import nn


def train(model, rows, targets, size):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    cursor, seen, count = 0, 0, len(rows)
    while cursor < count:
        x, y = rows[cursor : cursor + size], targets[cursor : cursor + size]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(x)
        cursor = (cursor + size) % count
        if seen % 3200 == 0:
            print(f"{seen} rows, loss {loss.item():.4f}", flush=True)
    return seen


def main():
    torch.manual_seed(7)
    rows = torch.randn(16000, 9)
    targets = rows[:, :3].sum(1, keepdim=True).sin() + 0.05 * torch.randn(16000, 1)
    model = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 1))
    print("trained on", train(model, rows, targets, 32), "rows", flush=True)


if __name__ == "__main__":
    main()
