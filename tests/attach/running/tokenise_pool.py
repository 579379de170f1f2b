"""Tokenises document shards in a multiprocessing pool before training a bag-of-words classifier."""

import multiprocessing as mp
import random
import zlib

import torch
from torch import nn

BUCKETS = 4096


def make_document(rng):
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(rng.randint(80, 300))]
    return " ".join(words)


def char_ngrams(text, low=3, high=5):
    for n in range(low, high + 1):
        for i in range(len(text) - n + 1):
            yield text[i : i + n]


def tokenize_shard(shard):
    """Counts hashed character n-grams of one shard of documents."""
    rng = random.Random(shard)
    counts = [0] * BUCKETS
    for _ in range(400):
        for gram in char_ngrams(make_document(rng)):
            counts[zlib.crc32(gram.encode()) % BUCKETS] += 1
    return shard, counts


def main():
    torch.set_num_threads(1)
    shards = 3000
    features = torch.zeros(shards, BUCKETS)
    with mp.Pool(processes=2) as pool:
        print("READY", flush=True)
        for done, (shard, counts) in enumerate(pool.imap_unordered(tokenize_shard, range(shards)), 1):
            features[shard] = torch.tensor(counts, dtype=torch.float32)
            if done % 5 == 0:
                print(f"tokenized {done}/{shards} shards", flush=True)

    labels = torch.randint(0, 2, (shards,))
    model = nn.Linear(BUCKETS, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10_000):
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 100 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
