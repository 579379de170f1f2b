import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.sampler import Sampler


class TrainingSampler(Sampler):
    def __init__(self, size, shuffle=True, seed=0, rank=0, world_size=1):
        self.size = size
        self.shuffle = shuffle
        self.seed = seed
        self.rank, self.world_size = rank, world_size

    def __iter__(self):
        yield from itertools.islice(self._indices(), self.rank, None, self.world_size)

    def _indices(self):
        g = torch.Generator()
        g.manual_seed(self.seed)
        while True:
            if self.shuffle:
                yield from torch.randperm(self.size, generator=g).tolist()
            else:
                yield from torch.arange(self.size).tolist()


class Shapes(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.y = torch.randint(0, 4, (n,), generator=g)
        self.noise = torch.randn(n, 1, 20, 20, generator=g) * 0.6

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.noise[i].clone()
        r, c = divmod(int(self.y[i]), 2)
        img[:, r * 10:r * 10 + 10, c * 10:c * 10 + 10] += 0.5
        return img, self.y[i]


class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        data = Shapes(args.images)
        self.args = args
        self.loader = DataLoader(data, batch_size=args.batch_size, sampler=TrainingSampler(len(data), seed=args.seed))
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(), nn.Linear(128, 4))
        self.optim = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=0.9)

    def train_step(self, img, target):
        self.optim.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.net(img), target)
        loss.backward()
        self.optim.step()
        return loss.item()

    def fit(self):
        iters_per_epoch = self.args.images // self.args.batch_size
        for epoch in range(self.args.epochs):
            losses = []
            for img, target in self.loader:
                losses.append(self.train_step(img, target))
                if len(losses) % 40 == 0:
                    print(f"[epoch {epoch}] it {len(losses)} loss {sum(losses[-40:]) / 40:.4f}", flush=True)
            print(f"[epoch {epoch}] mean loss {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--images", type=int, default=1920)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=0)
    Trainer(p.parse_args()).fit()
