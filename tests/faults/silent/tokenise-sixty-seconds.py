import collections
import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = float(os.environ.get("SCALE", "1"))


def learn_merges(texts, seconds=60):
    """Byte pair merges over the whole corpus, recounted after each merge."""
    words = [tuple(w) for t in texts for w in t.split()]
    merges, end = [], time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        pairs = collections.Counter(p for w in words for p in zip(w, w[1:]))
        if not pairs:
            words = [tuple(w) for t in texts for w in t.split()]
            continue
        (a, b), _ = min(pairs.items(), key=lambda kv: (-kv[1], kv[0]))
        if len(merges) < 40:
            merges.append((a, b))
        merged = []
        for w in words:
            out, i = [], 0
            while i < len(w):
                step = 2 if i + 1 < len(w) and w[i] == a and w[i + 1] == b else 1
                out.append("".join(w[i : i + step]))
                i += step
            merged.append(tuple(out))
        words = merged
    return merges


class Encoded(Dataset):
    def __init__(self, texts, merges):
        self.texts = texts
        self.vocab = {a + b: i + 1 for i, (a, b) in enumerate(merges)}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        ids = [v for k, v in self.vocab.items() if k in self.texts[i]][:10]
        return torch.tensor(ids + [0] * (10 - len(ids))), len(self.texts[i]) % 2


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    texts = [" ".join("".join(rng.choices("abcdefgh", k=8)) for _ in range(20)) for _ in range(500)]
    merges = learn_merges(texts)
    print("tokenised", flush=True)
    loader = DataLoader(Encoded(texts, merges), batch_size=20, num_workers=2)
    model = nn.Sequential(nn.EmbeddingBag(41, 16), nn.Linear(16, 2))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for ids, y in loader:
            loss = nn.functional.cross_entropy(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} done", flush=True)


if __name__ == "__main__":
    main()
