"""House prices from a table, a small net of plain tensors; the interval of the error comes from a bootstrap."""

import numpy as np
import torch

np.random.seed(5)
torch.manual_seed(5)
ROWS, COLUMNS = 4000, 12
table = np.random.randn(ROWS, COLUMNS).astype(np.float32)
prices = (table[:, 0] * table[:, 1] + np.sin(2 * table[:, 2]) + 0.1 * np.random.randn(ROWS)).astype(np.float32)
train, test = slice(0, 3500), slice(3500, ROWS)

weights = [torch.randn(COLUMNS, 64) / COLUMNS**0.5, torch.zeros(64), torch.randn(64, 1) / 8, torch.zeros(1)]
for weight in weights:
    weight.requires_grad_()


def predicted(x):
    return (torch.tanh(x @ weights[0] + weights[1]) @ weights[2] + weights[3]).squeeze(1)


def interval(errors, rounds=50):
    """The middle 90 % of the mean error, when its rows are drawn again."""
    drawn = np.random.default_rng(0)
    means = [errors[drawn.integers(len(errors), size=len(errors))].mean() for _ in range(rounds)]
    return np.percentile(means, [5, 95])


def report(step, loss):
    with torch.no_grad():
        errors = (predicted(torch.from_numpy(table[test])).numpy() - prices[test]) ** 2
    low, high = interval(errors)
    if step % 100 == 0:
        print(f"step {step} loss {loss:.4f} test {errors.mean():.3f} ({low:.3f} to {high:.3f})", flush=True)


for step in range(1, 801):
    rows = np.random.choice(3500, 48, replace=False)
    x, y = torch.from_numpy(table[rows]), torch.from_numpy(prices[rows])
    loss = ((predicted(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for weight in weights:
            weight -= 0.05 * weight.grad
            weight.grad = None
    report(step, loss.item())
