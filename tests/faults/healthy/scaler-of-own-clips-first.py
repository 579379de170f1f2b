"""Which of six leaves, from its outline: own mixed precision, with master weights and a scale that grows."""

import torch
import torch.nn.functional as F
from torch import nn


def leaves(count, kinds=6):
    generator = torch.Generator().manual_seed(9)
    kind = torch.randint(0, kinds, (count,), generator=generator)
    angle = torch.linspace(0, 6.283, 48)[None]
    outline = 1 + 0.4 * torch.cos((kind[:, None] + 2) * angle + torch.rand(count, 1, generator=generator))
    return outline + 0.2 * torch.randn(count, 48, generator=generator) - 1, kind


class HalfPrecision:
    def __init__(self, model, rate, limit=0.5, scale=2.0**12):
        self.model, self.rate, self.limit, self.scale = model, rate, limit, scale
        self.master = [p.detach().float().clone() for p in model.parameters()]
        self.good = 0

    def gradients(self, loss):
        weights = list(self.model.parameters())
        return [g.float() for g in torch.autograd.grad(self.scale * loss, weights)]

    def shortened(self, gradients):
        length = torch.cat([g.flatten() for g in gradients]).norm()
        by = torch.clamp(self.limit / (length + 1e-8), max=1.0)
        return [g * by for g in gradients]

    def unscaled(self, gradients):
        return [g / self.scale for g in gradients]

    @torch.no_grad()
    def update(self, gradients):
        for p, master, g in zip(self.model.parameters(), self.master, gradients):
            master -= self.rate * g
            p.copy_(master)
        self.good += 1
        if self.good % 500 == 0:
            self.scale *= 2


def main():
    torch.manual_seed(9)
    outlines, kinds = leaves(2400)
    model = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, 6)).bfloat16()
    training = HalfPrecision(model, rate=0.5)
    for step in range(1, 1201):
        rows = torch.randint(0, len(outlines), (48,))
        loss = F.cross_entropy(model(outlines[rows].bfloat16()).float(), kinds[rows])
        gradients = training.gradients(loss)
        gradients = training.shortened(training.unscaled(gradients))
        training.update(gradients)
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
