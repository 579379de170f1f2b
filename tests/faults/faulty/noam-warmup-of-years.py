"""A little transformer with the schedule of its paper, warm-up meant for a far longer run."""

import torch
from torch import nn

torch.manual_seed(1)
D, VOCAB, LENGTH = 32, 12, 10


class Noam:
    def __init__(self, optimizer, model_size, warmup):
        self.optimizer, self.model_size, self.warmup = optimizer, model_size, warmup
        self.count = 0

    def step(self):
        self.count += 1
        rate = self.model_size**-0.5 * min(self.count**-0.5, self.count * self.warmup**-1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, D)
        self.place = nn.Parameter(torch.randn(LENGTH, D) * 0.1)
        self.block = nn.TransformerEncoderLayer(D, 2, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(D, VOCAB)

    def forward(self, tokens):
        return self.out(self.block(self.embed(tokens) + self.place))


model = Copier()
adam = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
noam = Noam(adam, D, warmup=400_000)
for step in range(400):
    tokens = torch.randint(VOCAB, (32, LENGTH))
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())
    adam.zero_grad()
    loss.backward()
    noam.step()
    if step % 40 == 0:
        print(step, loss.item())
