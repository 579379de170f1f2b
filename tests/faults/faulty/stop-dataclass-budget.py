"""Training by a budget of tokens, kept in a dataclass that says when it is used up."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Budget:
    tokens: int
    used: int = 0

    def spend(self, batch):
        self.used += batch.numel()

    def exhausted(self):
        return self.used == self.tokens


class TinyLM(nn.Module):
    def __init__(self, vocab=50, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mix = nn.Conv1d(width, width, 3, padding=2)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        h = self.embed(tokens).transpose(1, 2)
        h = torch.relu(self.mix(h)[..., : tokens.shape[1]])
        return self.head(h.transpose(1, 2))


def sentences(batch=8):
    length = int(torch.randint(10, 24, ()))
    start = torch.randint(50, (batch, 1))
    return (start + 3 * torch.arange(length + 1)) % 50


def train(budget):
    torch.manual_seed(0)
    model = TinyLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while not budget.exhausted():
        tokens = sentences()
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        budget.spend(tokens)
        step += 1
        if step % 100 == 0:
            print(f"step {step} used {budget.used} loss {loss.item():.3f}", flush=True)
    return step


if __name__ == "__main__":
    print("steps:", train(Budget(tokens=6_001)))
