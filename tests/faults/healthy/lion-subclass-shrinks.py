"""The next letter of a made-up language, with a Lion written as a subclass of Optimizer."""

import torch
from torch import nn
from torch.optim import Optimizer


class SignedMomentum(Optimizer):
    def __init__(self, params, lr=3e-4, betas=(0.9, 0.99), shrink=0.02):
        super().__init__(params, {"lr": lr, "betas": betas, "shrink": shrink})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            fast, slow = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                p -= group["lr"] * group["shrink"] * p
                p -= group["lr"] * torch.sign(fast * mean + (1 - fast) * p.grad)
                mean.mul_(slow).add_(p.grad, alpha=1 - slow)


def letters(count):
    """Each letter follows from the two before it, four times out of five."""
    table = torch.randint(0, 12, (12, 12))
    text = [0, 1]
    for luck in torch.rand(count - 2).tolist():
        text.append(int(table[text[-2], text[-1]]) if luck < 0.8 else int(torch.randint(0, 12, ())))
    return torch.tensor(text)


class Speller(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.inner = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 12))

    def forward(self, pairs):
        return self.inner(self.embed(pairs).flatten(1))


torch.manual_seed(3)
text = letters(8000)
speller = Speller()
optimizer = SignedMomentum(speller.parameters())
recent = []
for step in range(1500):
    at = torch.randint(0, len(text) - 2, (64,))
    scores = speller(torch.stack([text[at], text[at + 1]], 1))
    loss = nn.functional.cross_entropy(scores, text[at + 2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 250 == 249:
        print(step + 1, round(sum(recent[-250:]) / 250, 3))
