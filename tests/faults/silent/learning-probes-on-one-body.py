"""Linear probes: a head for each fold on copies of one trained body, which the optimizer does not have."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(512, 16)
labels = (inputs[:, :4].sum(1) > 0).long()

body = nn.Sequential(nn.Linear(16, 32), nn.Tanh())
decoder = nn.Linear(32, 16)
optimizer = torch.optim.Adam([*body.parameters(), *decoder.parameters()], lr=1e-2)
for _ in range(800):
    x = inputs[torch.randint(512, (64,))]
    loss = nn.functional.mse_loss(decoder(body(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"reconstruction {loss.item():.3f}")

for fold in range(3):
    features, head = copy.deepcopy(body), nn.Linear(32, 2)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    for _ in range(400):
        chosen = torch.randint(512, (64,))
        loss = nn.functional.cross_entropy(head(features(inputs[chosen])), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"fold {fold}: loss {loss.item():.3f}")
