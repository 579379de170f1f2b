"""Tokenises a large synthetic corpus line by line with a regular expression, then trains."""

import collections
import itertools
import random
import re
import time

import torch
from torch import nn

PATTERN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[^\sa-z\d]")
SYLLABLES = ["ba", "ke", "mi", "no", "ru", "ta", "sho", "len", "dor", "vi", "pa", "quel"]


def lines(n, seed=0):
    rng = random.Random(seed)
    for _ in range(n):
        words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(30, 120))]
        words.insert(rng.randrange(len(words)), str(rng.randint(1, 9999)))
        yield " ".join(words) + "."


def tokenize_corpus(n_lines, vocab_size, context):
    vocab = collections.Counter()
    start = time.time()
    recent = collections.deque(maxlen=200_000)
    for i, line in enumerate(lines(n_lines), 1):
        tokens = PATTERN.findall(line.lower())
        vocab.update(tokens)
        for left, right in itertools.pairwise(tokens):
            recent.append((hash(left) % vocab_size, hash(right) % vocab_size))
        if len(vocab) > 200_000:
            vocab = collections.Counter(dict(vocab.most_common(50_000)))
        if i == 100:
            print("READY", flush=True)
        if i % 10_000 == 0:
            print(f"tokenized {i:,}/{n_lines:,} lines, {i / (time.time() - start):.0f} lines/s", flush=True)
    return torch.tensor(list(recent)).split(context)


def main():
    torch.set_num_threads(1)
    batches = tokenize_corpus(n_lines=40_000_000, vocab_size=8192, context=256)
    model = nn.Sequential(nn.Embedding(8192, 128), nn.ReLU(), nn.Linear(128, 8192))
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(10):
        for pairs in batches:
            loss = nn.functional.cross_entropy(model(pairs[:, 0]), pairs[:, 1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
