import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class SensorLog(IterableDataset):
    def __init__(self, records, seed):
        self.records, self.seed = records, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.records):
            kind = torch.randint(0, 4, (1,), generator=g).item()
            wave = torch.sin(torch.linspace(0, 4.0 * (kind + 1), 96)) + 0.7 * torch.randn(96, generator=g)
            yield wave, kind


class Trainer:
    def __init__(self, model, train_loader, val_loader, steps, lr):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.steps = steps
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.batches = iter(train_loader)

    def next_batch(self):
        return next(self.batches)

    def train(self):
        self.model.train()
        for step in range(1, self.steps + 1):
            wave, kind = self.next_batch()
            loss = nn.functional.cross_entropy(self.model(wave.unsqueeze(1)), kind)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.4f} val acc {self.validate():.3f}", flush=True)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hit = n = 0
        for wave, kind in self.val_loader:
            hit += (self.model(wave.unsqueeze(1)).argmax(1) == kind).sum().item()
            n += len(kind)
        self.model.train()
        return hit / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=800)
    ap.add_argument("--lr", type=float, default=5e-4)
    args = ap.parse_args()
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(1, 16, 7, padding=3),
        nn.ReLU(),
        nn.Conv1d(16, 32, 7, stride=2, padding=3),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(128, 4),
    )
    train_loader = DataLoader(SensorLog(args.steps * 16, 21), batch_size=16)
    val_loader = DataLoader(SensorLog(400, 22), batch_size=100)
    Trainer(net, train_loader, val_loader, args.steps, args.lr).train()


if __name__ == "__main__":
    main()
