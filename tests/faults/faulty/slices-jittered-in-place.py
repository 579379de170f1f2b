"""Which crop grows in a field, from twelve bands of a satellite; slices of the table, with noise against overfitting."""

import torch
from torch import nn

torch.manual_seed(1)
crop = torch.randint(6, (4800,))
bands = torch.randn(6, 12)[crop] + 0.5 * torch.randn(4800, 12)
held_out, held_crop = bands[4000:].clone(), crop[4000:]
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(150):
    for k in torch.randperm(40).tolist():
        x, y = bands[100 * k : 100 * (k + 1)], crop[100 * k : 100 * (k + 1)]
        x += 0.3 * torch.randn_like(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    if epoch % 15 == 0:
        with torch.no_grad():
            right = (net(held_out).argmax(1) == held_crop).float().mean().item()
        print(f"epoch {epoch}: {100 * right:.1f} % right")
