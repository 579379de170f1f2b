"""Words by their neighbours, with an Adagrad of its own; embeddings of rare words stay as they are."""

import torch
from torch import nn

torch.manual_seed(8)


class Adagrad:
    def __init__(self, parameters, rate=0.05):
        self.weights = [p for p in parameters if p.requires_grad]
        self.rate = rate
        self.sums = {id(weight): torch.zeros_like(weight) for weight in self.weights}

    def step(self):
        with torch.no_grad():
            for weight in self.weights:
                total = self.sums[id(weight)]
                total += weight.grad.pow(2)
                weight -= self.rate * weight.grad / (total.sqrt() + 1e-8)


class Neighbours(nn.Module):
    def __init__(self, words=200, size=24):
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.out = nn.Linear(size, words)

    def forward(self, words):
        return self.out(self.embed(words))


model = Neighbours()
optimizer = Adagrad(model.parameters())
for step in range(1, 601):
    words = torch.randint(0, 200, (64,))
    next_words = (words + torch.randint(1, 4, (64,))) % 200
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(words), next_words)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
