"""Prototypes of sounds: each is drawn to its frames, and kept away from the prototype next to it."""

import torch
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)

CENTRES = 2.0 * torch.randn(12, 10)
LIFT = torch.randn(10, 24)


def frames(count):
    kind = torch.randint(0, 12, (count,))
    return (CENTRES[kind] + 0.4 * torch.randn(count, 10)) @ LIFT / 3


class Prototypes(nn.Module):
    def __init__(self, count=12, width=8):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, width))
        self.decode = nn.Linear(width, 24)
        self.places = nn.Parameter(0.1 * torch.randn(count, width))

    def forward(self, x):
        z = self.encode(x)
        near = torch.cdist(z, self.places).softmax(1, dtype=torch.float32)
        drawn = (near * torch.cdist(z, self.places)).sum(1).mean()
        between = (self.places[:, None] - self.places[None, :]).square().sum(-1)
        others = 1 - torch.eye(len(self.places))
        crowding = (1.0 + (between * others).min(dim=1).values).reciprocal().mean()
        return (self.decode(z) - x).square().mean(), drawn, crowding


model = Prototypes()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1, 1201):
    fit, drawn, crowding = model(frames(128))
    loss = fit + 0.1 * drawn + 2.0 * crowding
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step} fit {fit.item():.4f} drawn {drawn.item():.4f} crowding {crowding.item():.4f}")
