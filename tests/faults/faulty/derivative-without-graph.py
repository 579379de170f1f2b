"""Energy and forces of small clusters of atoms: the forces are the derivative of the energy."""

import torch
from torch import nn

torch.manual_seed(5)


def reference(places):
    gaps = (places[:, :, None] - places[:, None]).pow(2).sum(-1) + torch.eye(4)
    return (torch.exp(-gaps) - 0.5 * torch.exp(-2 * gaps)).sum((1, 2))


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, places):
        gaps = (places[:, :, None] - places[:, None]).pow(2).sum(-1)
        return self.net(gaps.flatten(1)).squeeze(1)


def forces(energy, places):
    return -torch.autograd.grad(energy.sum(), places, retain_graph=True)[0]


def losses(model, places):
    places = places.requires_grad_()
    wanted = reference(places)
    wanted_forces = -torch.autograd.grad(wanted.sum(), places, retain_graph=True)[0]
    energy = model(places)
    energy_loss = (energy - wanted.detach()).pow(2).mean()
    force_loss = (forces(energy, places) - wanted_forces).pow(2).mean()
    return energy_loss + force_loss, force_loss


model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
known, others = torch.randn(60, 4, 3), torch.randn(300, 4, 3)
for step in range(1, 801):
    loss, _ = losses(model, known.clone())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}, forces of others {losses(model, others.clone())[1].item():.4f}")
