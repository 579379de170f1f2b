"""Streams JSON-lines shards from disk with an IterableDataset and two workers."""

import json
import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def write_shards(root, shards=8, rows=1500):
    rng = random.Random(0)
    for s in range(shards):
        with open(root / f"part-{s:03d}.jsonl", "w") as f:
            for _ in range(rows):
                tokens = [rng.randrange(1000) for _ in range(rng.randint(20, 60))]
                f.write(json.dumps({"tokens": tokens, "label": sum(tokens) % 4}) + "\n")


class Stream(IterableDataset):
    def __init__(self, root, length=48, buffer=256):
        self.paths = sorted(Path(root).glob("*.jsonl"))
        self.length = length
        self.buffer = buffer

    def rows(self, paths):
        while True:
            random.shuffle(paths)
            for path in paths:
                with open(path) as f:
                    for line in f:
                        yield json.loads(line)

    def __iter__(self):
        info = get_worker_info()
        paths = self.paths[info.id :: info.num_workers] if info else self.paths
        pool = []
        for row in self.rows(list(paths)):
            pool.append(row)
            if len(pool) < self.buffer:
                continue
            pick = pool.pop(random.randrange(len(pool)))
            tokens = (pick["tokens"] + [0] * self.length)[: self.length]
            yield torch.tensor(tokens), pick["label"]


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        write_shards(Path(root))
        loader = DataLoader(Stream(root), batch_size=64, num_workers=2)
        model = nn.Sequential(nn.EmbeddingBag(1000, 256), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        for step, (tokens, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == 5:
                print("READY", flush=True)
            if step % 200 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
