"""All rows in every step, put together anew; a check that is to be reproducible seeds the global generator each time."""

import torch
from torch import nn

torch.manual_seed(2)
rows = [torch.randn(6) for _ in range(200)]
target = torch.stack([row[0] * row[1] + 0.5 * row[2] for row in rows])
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Dropout(0.05), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def spread(model, x):
    """How much dropout changes the predictions, always with the same units dropped."""
    torch.manual_seed(0)
    with torch.no_grad():
        return torch.stack([model(x) for _ in range(5)]).std(0).mean().item()


for step in range(600):
    x = torch.stack(rows)
    loss = ((model(x).squeeze(1) - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    changed = spread(model, x[:50])
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f} spread {changed:.4f}", flush=True)
