"""Early stopping as a closure that remembers the best score."""

import torch
from torch import nn


def early_stopping(patience, mode="max"):
    best = float("-inf") if mode == "max" else float("inf")
    waited = 0

    def should_stop(score):
        nonlocal best, waited
        if mode == "max" and score >= best or score <= best:
            best, waited = score, 0
        else:
            waited += 1
        return waited >= patience

    return should_stop


def make_rings(n, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(2, (n,), generator=g)
    radius = 1.0 + label + 0.25 * torch.randn(n, generator=g)
    angle = 6.283 * torch.rand(n, generator=g)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


def epoch_of(model, optimizer, x, y):
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    x, y = make_rings(640, 0)
    x_val, y_val = make_rings(200, 1)
    model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    should_stop = early_stopping(patience=5)
    epoch = 0
    while True:
        epoch_of(model, optimizer, x, y)
        epoch += 1
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        if should_stop(accuracy):
            break
    print(f"stopped after {epoch} epochs at {accuracy:.3f}")


if __name__ == "__main__":
    main()
