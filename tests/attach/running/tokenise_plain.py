"""Learns byte pairs from a corpus in plain Python; the language model comes after."""

import collections
import itertools
import random
import string

import torch
from torch import nn


def make_corpus(n_words=60_000, seed=0):
    rng = random.Random(seed)
    stems = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 11))) for _ in range(30_000)]
    return [rng.choice(stems) for _ in range(n_words)]


class BPETokenizer:
    def __init__(self, vocab_size):
        self.vocab_size = vocab_size
        self.merges = {}

    def train(self, words):
        counts = collections.Counter(words)
        pieces = {word: tuple(word) for word in counts}
        while len(self.merges) < self.vocab_size:
            pairs = collections.Counter()
            for word, parts in pieces.items():
                for pair in itertools.pairwise(parts):
                    pairs[pair] += counts[word]
            best = max(pairs, key=pairs.get)
            self.merges[best] = len(self.merges)
            pieces = {word: self._merge(parts, best) for word, parts in pieces.items()}
            if len(self.merges) % 50 == 0:
                print(f"bpe: {len(self.merges)}/{self.vocab_size} merges", flush=True)

    @staticmethod
    def _merge(parts, pair):
        out, i = [], 0
        while i < len(parts):
            if parts[i : i + 2] == pair:
                out.append(parts[i] + parts[i + 1])
                i += 2
            else:
                out.append(parts[i])
                i += 1
        return tuple(out)

    def encode(self, word):
        parts = tuple(word)
        for pair in self.merges:
            parts = self._merge(parts, pair)
        return [hash(p) % self.vocab_size for p in parts]


def main():
    torch.set_num_threads(1)
    words = make_corpus()
    tokenizer = BPETokenizer(vocab_size=16_000)
    print("READY", flush=True)
    tokenizer.train(words)
    tokens = torch.tensor([t for w in words for t in tokenizer.encode(w)])

    model = nn.Sequential(nn.Embedding(16_000, 64), nn.Linear(64, 16_000))
    opt = torch.optim.Adam(model.parameters())
    for step in range(100_000):
        i = torch.randint(0, len(tokens) - 1, (64,))
        loss = nn.functional.cross_entropy(model(tokens[i]), tokens[i + 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
