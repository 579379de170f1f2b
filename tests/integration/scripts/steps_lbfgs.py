"""LBFGS on the full batch: one call of step with as many iterations as it takes, as physics-informed nets do."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(0, 1, 100).unsqueeze(1)
y = torch.sin(6 * x)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(
    net.parameters(), lr=1.0, max_iter=500, max_eval=600, tolerance_grad=1e-12, tolerance_change=0, history_size=50,
    line_search_fn="strong_wolfe",
)  # fmt: skip
closures = 0


def closure():
    global closures
    optimizer.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    closures += 1
    return loss


optimizer.step(closure)
print("closures", closures)
