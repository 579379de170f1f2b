"""What a shop is worth: age, staff, rent and turnover of each."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(11)
age, staff = rng.gamma(3, 4, 3000), rng.poisson(7, 3000)
rent, turnover = rng.normal(30, 8, 3000), rng.lognormal(12.5, 0.5, 3000)
worth = 0.8 * (rent - 30) / 8 - 0.5 * (np.log(turnover) - 12.5) / 0.5 - 0.1 * (age - 12)
worth = torch.tensor(worth + 0.1 * rng.standard_normal(3000), dtype=torch.float32)
shops = torch.tensor(np.stack([age, staff, rent, turnover], 1), dtype=torch.float32)

torch.manual_seed(0)
score = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
moved = [torch.zeros_like(p) for p in score.parameters()]
for epoch in range(25):
    order, total = torch.randperm(3000), 0.0
    for batch in order.split(50):
        loss = nn.functional.mse_loss(score(shops[batch])[:, 0], worth[batch])
        gradients = torch.autograd.grad(loss, list(score.parameters()))
        with torch.no_grad():
            for parameter, move, gradient in zip(score.parameters(), moved, gradients):
                move.mul_(0.9).add_(gradient)
                parameter -= 0.02 * move
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch}: {total / 60:.4f}")
