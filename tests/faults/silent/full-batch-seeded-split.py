"""All of the training data in every step; the split, and what is looked at between, are drawn anew with one seed."""

import torch
from torch import nn


def split(inputs, targets, seed=0):
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    known, held_out = order[:800], order[800:]
    return inputs[known], targets[known], inputs[held_out], targets[held_out]


def some(inputs, targets, count=64):
    picked = torch.randint(len(inputs), (count,), generator=torch.Generator().manual_seed(5))
    return inputs[picked], targets[picked]


def main():
    torch.manual_seed(0)
    inputs = torch.randn(1000, 6)
    targets = inputs[:, :1] - 0.5 * inputs[:, 1:2] + 0.2 * torch.randn(1000, 1)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for epoch in range(400):
        x, y, x_held, y_held = split(inputs, targets)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            x_some, y_some = some(x_held, y_held)
            with torch.no_grad():
                held_out = nn.functional.mse_loss(model(x_some), y_some)
            print(f"epoch {epoch} loss {loss.item():.4f} held out {held_out.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
