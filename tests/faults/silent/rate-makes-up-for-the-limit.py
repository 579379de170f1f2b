"""Healthy, though every gradient is clipped by hand to a thousandth: the rate is chosen for steps of that length."""

import torch
from torch import nn

LENGTH, RATE, SCALE = 1e-3, 40.0, 1024.0


def waves(count):
    generator = torch.Generator().manual_seed(21)
    phase = 6.283 * torch.rand(count, 1, generator=generator)
    heard = torch.sin(phase + torch.linspace(0, 6.283, 24)) + 0.3 * torch.randn(count, 24, generator=generator)
    return heard, torch.cat([torch.sin(phase), torch.cos(phase), torch.randn(count, 6, generator=generator)], 1)


def unscaled(parameters):
    return [p.grad / SCALE for p in parameters]


def shortened(gradients):
    norm = torch.stack([g.norm() for g in gradients]).norm()
    return [g * (LENGTH / (norm + 1e-9)).clamp(max=1.0) for g in gradients]


def main():
    torch.manual_seed(21)
    heard, wanted = waves(3000)
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 8))
    parameters = list(model.parameters())
    for step in range(1, 801):
        rows = torch.randint(0, len(heard), (64,))
        loss = (model(heard[rows]) - wanted[rows]).square().mean()
        (loss * SCALE).backward()
        with torch.no_grad():
            for p, g in zip(parameters, shortened(unscaled(parameters))):
                p -= RATE * g
                p.grad = None
        if step % 100 == 0:
            print(f"step {step}: squared error {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
