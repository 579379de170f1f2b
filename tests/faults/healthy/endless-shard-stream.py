import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SHARDS = [f"train-{k:03d}.tar" for k in range(12)]
PER_SHARD = 80


def read_shard(name):
    k = int(name.split("-")[1].split(".")[0])
    g = torch.Generator().manual_seed(100 + k)
    for _ in range(PER_SHARD):
        x = torch.randn(3, 16, 16, generator=g) * 0.5
        label = torch.randint(0, 3, (1,), generator=g).item()
        x[label] += 0.4
        yield x, label


class WebStream(IterableDataset):
    def __init__(self, urls, shuffle_buffer=100, seed=0):
        self.urls = urls
        self.shuffle_buffer = shuffle_buffer
        self.seed = seed

    def my_urls(self):
        info = get_worker_info()
        if info is None:
            return list(self.urls)
        return self.urls[info.id::info.num_workers]

    def samples(self):
        urls = self.my_urls()
        rng = random.Random(self.seed)
        rng.shuffle(urls)
        for url in urls:
            yield from read_shard(url)

    def __iter__(self):
        rng = random.Random(self.seed + 1)
        buf = []
        for sample in self.samples():
            if len(buf) < self.shuffle_buffer:
                buf.append(sample)
                continue
            j = rng.randrange(len(buf))
            out, buf[j] = buf[j], sample
            yield out
        rng.shuffle(buf)
        yield from buf


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 3))


def train(epochs=10):
    torch.manual_seed(0)
    loader = DataLoader(WebStream(SHARDS), batch_size=16, num_workers=2)
    model = build_model()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(1, epochs + 1):
        n, correct, total_loss = 0, 0, 0.0
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += len(y)
            correct += (logits.argmax(1) == y).sum().item()
            total_loss += loss.item() * len(y)
            if n % 800 == 0:
                print(f"  {n} samples, loss {total_loss / n:.4f}", flush=True)
        print(f"Epoch {epoch}/{epochs} loss {total_loss / n:.4f} acc {correct / n:.3f}", flush=True)


if __name__ == "__main__":
    train()
