"""Sequence reversal with a GRU encoder-decoder, additive attention and decaying teacher forcing."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)
random.seed(args.seed)

VOCAB, LENGTH, DIM = 10, 6, 48
START = VOCAB


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB + 1, DIM)
        self.encoder = nn.GRU(DIM, DIM, batch_first=True)
        self.decoder = nn.GRUCell(2 * DIM, DIM)
        self.query, self.key, self.score = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, 1)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, src, tgt, teacher):
        memory, h = self.encoder(self.emb(src))
        h, keys = h[0], self.key(memory)
        token = torch.full((len(src),), START)
        logits = []
        for t in range(LENGTH):
            weight = F.softmax(self.score(torch.tanh(self.query(h).unsqueeze(1) + keys)), dim=1)
            context = (weight * memory).sum(1)
            h = self.decoder(torch.cat([self.emb(token), context], 1), h)
            logits.append(self.out(h))
            token = tgt[:, t] if random.random() < teacher else logits[-1].argmax(1)
        return torch.stack(logits, 1)


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
STEPS = 500
avg = None
for step in range(STEPS):
    src = torch.randint(0, VOCAB, (32, LENGTH))
    tgt = src.flip(1)
    logits = model(src, tgt, teacher=1.0 - 0.7 * step / STEPS)
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), tgt.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step} loss {avg:.4f}")
