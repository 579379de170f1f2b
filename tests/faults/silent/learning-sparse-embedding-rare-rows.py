"""Bag-of-words sentiment with a sparse EmbeddingBag: Zipf tokens, so most rows are touched rarely or never."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

VOCAB, LENGTH = 20000, 30
freq = 1.0 / torch.arange(1, VOCAB + 1).float()
polarity = torch.randn(VOCAB)


def get_batch(n=128):
    tokens = torch.multinomial(freq, n * LENGTH, replacement=True).view(n, LENGTH)
    score = polarity[tokens].sum(1)
    return tokens, (score > 0).float()


class TextModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.EmbeddingBag(VOCAB, dim, mode="mean", sparse=True)
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, tokens):
        return self.head(self.emb(tokens)).squeeze(1)


model = TextModel()
sparse_opt = torch.optim.SparseAdam(model.emb.parameters(), lr=5e-3)
dense_opt = torch.optim.Adam(model.head.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

running = None
for step in range(900):
    tokens, target = get_batch()
    loss = criterion(model(tokens), target)
    sparse_opt.zero_grad()
    dense_opt.zero_grad()
    loss.backward()
    sparse_opt.step()
    dense_opt.step()
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 100 == 0 or step == 899:
        print(f"step {step} loss {running:.4f}")
