import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Sequences(Dataset):
    def __init__(self, n=505, seed=0):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(5, 30, (n,), generator=g).tolist()
        self.items = [torch.randn(length, 6, generator=g) for length in lengths]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], self.items[i].mean()


class BalancedBatches(Sampler):
    """Batches that take turns between short and long sequences."""

    def __init__(self, lengths, batch_size, seed=0):
        self.short = [i for i, n in enumerate(lengths) if n < 18]
        self.long = [i for i, n in enumerate(lengths) if n >= 18]
        self.batch_size, self.rng = batch_size, random.Random(seed)

    def __len__(self):
        return len(self.short + self.long) // self.batch_size

    def __iter__(self):
        left = {"short": self.short[:], "long": self.long[:]}
        for pool in left.values():
            self.rng.shuffle(pool)
        for _ in range(len(self.short + self.long) // self.batch_size + 1):
            batch, turn = [], "short"
            while len(batch) < self.batch_size:
                if left[turn]:
                    batch.append(left[turn].pop())
                turn = "long" if turn == "short" else "short"
            yield batch


def collate(batch):
    x = nn.utils.rnn.pad_sequence([s for s, _ in batch], batch_first=True)
    return x, torch.stack([y for _, y in batch])


def main():
    torch.manual_seed(0)
    data = Sequences()
    sampler = BalancedBatches([len(s) for s, _ in data], batch_size=10)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    rnn, head = nn.GRU(6, 24, batch_first=True), nn.Linear(24, 1)
    opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=2e-3)
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(head(rnn(x)[1][-1]).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
