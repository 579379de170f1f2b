"""Word vectors by skip-gram with negative sampling: rows of two plain tables, taken with index_select."""

import random

import torch
from torch.nn import functional

torch.manual_seed(0)
WORDS, SIZE, BATCH = 500, 16, 128
topics = torch.randint(10, (3000,)).repeat_interleave(8)
text = (topics * 50 + torch.randint(50, topics.shape)).tolist()


class Pairs:
    def __init__(self, words, seed=3):
        self.words, self.seed = words, seed

    def draw(self, count):
        source = random.Random(self.seed)
        places = source.sample(range(1, len(self.words) - 1), count)
        centre = torch.tensor([self.words[place] for place in places])
        near = torch.tensor([self.words[place + source.choice((-1, 1))] for place in places])
        return centre, near, torch.tensor([source.randrange(WORDS) for _ in places])


def score(centre, other):
    return (inner.index_select(0, centre) * outer.index_select(0, other)).sum(1)


inner = (torch.randn(WORDS, SIZE) * 0.1).requires_grad_()
outer = (torch.randn(WORDS, SIZE) * 0.1).requires_grad_()
optimizer = torch.optim.Adam([inner, outer], lr=0.02)
pairs = Pairs(text)
for step in range(1200):
    centre, near, far = pairs.draw(BATCH)
    loss = functional.softplus(-score(centre, near)).mean() + functional.softplus(score(centre, far)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
