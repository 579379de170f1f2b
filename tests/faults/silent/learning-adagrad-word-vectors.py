"""Skip-gram word vectors with negative sampling and Adagrad, small uniform init and a zero-init context table."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

VOCAB, TOPICS, DIM = 600, 12, 24
topic_of = torch.arange(VOCAB) % TOPICS


def get_batch(n=256, negatives=5):
    center = torch.randint(0, VOCAB, (n,))
    context = topic_of[center] + TOPICS * torch.randint(0, VOCAB // TOPICS, (n,))
    noise = torch.randint(0, VOCAB, (n, negatives))
    return center, context, noise


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(VOCAB, DIM)
        self.context = nn.Embedding(VOCAB, DIM)
        nn.init.uniform_(self.center.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, context, noise):
        c = self.center(center)
        pos = (c * self.context(context)).sum(1)
        neg = torch.einsum("nd,nkd->nk", c, self.context(noise))
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(1)).mean()


model = SkipGram()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
avg = None
for step in range(1500):
    loss = model(*get_batch())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if avg is None else 0.98 * avg + 0.02 * loss.item()
    if step % 150 == 0 or step == 1499:
        print(f"step {step} loss {avg:.4f}")
