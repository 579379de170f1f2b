"""Sequence model whose validation metric (edit distance, pair by pair) is plain Python."""

import random

import torch
from torch import nn

VOCAB = "abcdefghijklmnopqrstuvwxyz "


def edit_distance(a, b):
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        current = [i]
        for j, cb in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (ca != cb)))
        previous = current
    return previous[-1]


class Tagger(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, len(VOCAB))

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def random_text(length):
    return "".join(random.choices(VOCAB, k=length))


def encode(text):
    return torch.tensor([VOCAB.index(c) for c in text])


def train_epoch(model, optimizer, steps=5):
    model.train()
    for _ in range(steps):
        tokens = torch.stack([encode(random_text(80)) for _ in range(8)])
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def transcribe(model, ref):
    best = model(encode(ref)[None]).argmax(-1)[0]
    return "".join(VOCAB[k] for k in best.tolist())


def character_error_rate(model, references):
    model.eval()
    print("READY", flush=True)
    errors = total = 0
    for n, ref in enumerate(references):
        hyp = transcribe(model, ref)
        errors += edit_distance(hyp, ref)
        total += len(ref)
        if n % 25 == 0:
            print(f"  scored {n}/{len(references)} CER so far {errors / total:.3f}", flush=True)
    return errors / total


def main():
    random.seed(0)
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    references = [random_text(random.randint(600, 1400)) for _ in range(5000)]
    for epoch in range(10):
        loss = train_epoch(model, optimizer)
        print(f"epoch {epoch} loss {loss:.3f}", flush=True)
        print(f"epoch {epoch} CER {character_error_rate(model, references):.4f}", flush=True)


if __name__ == "__main__":
    main()
