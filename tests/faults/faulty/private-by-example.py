"""Which patients come back, learned privately: each one's gradient is clipped, the sum gets noise."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


def patients(count):
    generator = torch.Generator().manual_seed(17)
    file = torch.randn(count, 9, generator=generator)
    return file, (2 * file[:, 0] - file[:, 1] + file[:, 2] * file[:, 3] > 0).float()[:, None]


class Private:
    def __init__(self, model, rate, most, noise):
        self.weights = list(model.parameters())
        self.rate, self.noise = rate, noise
        self.most = most / sum(w.numel() for w in self.weights)

    def step(self, losses):
        total = [torch.zeros_like(w) for w in self.weights]
        for at in range(len(losses)):
            own = torch.autograd.grad(losses[at], self.weights, retain_graph=True)
            norm = torch.stack([g.norm() for g in own]).norm()
            factor = torch.clamp(self.most / (norm + 1e-6), max=1.0)
            for to, g in zip(total, own):
                to.add_(g, alpha=factor.item())
        with torch.no_grad():
            for w, g in zip(self.weights, total):
                g += self.noise * self.most * torch.randn_like(g)
                w -= self.rate * g / len(losses)


def main():
    torch.manual_seed(17)
    file, back = patients(1500)
    model = nn.Sequential(nn.Linear(9, 48), nn.Tanh(), nn.Linear(48, 1))
    training = Private(model, rate=0.1, most=1.0, noise=0.2)
    for step in range(1, 501):
        rows = torch.randint(0, len(file), (16,))
        losses = binary_cross_entropy_with_logits(model(file[rows]), back[rows], reduction="none")[:, 0]
        training.step(losses)
        if step % 50 == 0:
            print(f"step {step}: loss {losses.mean().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
