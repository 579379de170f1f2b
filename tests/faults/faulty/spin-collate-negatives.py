import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Interactions(Dataset):
    def __init__(self, users=120, items=40, seed=0):
        rng = random.Random(seed)
        self.seen = [set(rng.sample(range(items), rng.randint(3, 12))) for _ in range(users)]
        self.seen[67] = set(range(items))
        self.pairs = [(u, i) for u in range(users) for i in sorted(self.seen[u])]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, k):
        return self.pairs[k]


class NegativeSampler:
    """Adds one item per pair that the user has not seen."""

    def __init__(self, seen, items=40):
        self.seen, self.items = seen, items
        self.rng = random.Random(1)

    def draw(self, user):
        item = self.rng.randrange(self.items)
        while item in self.seen[user]:
            item = self.rng.randrange(self.items)
        return item

    def __call__(self, batch):
        return torch.tensor([(u, i, self.draw(u)) for u, i in batch])


class Factors(nn.Module):
    def __init__(self, users=120, items=40, dim=16):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)


def main():
    torch.manual_seed(0)
    data = Interactions()
    loader = DataLoader(data, batch_size=16, num_workers=2, collate_fn=NegativeSampler(data.seen))
    model = Factors()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(4):
        for step, batch in enumerate(loader):
            u, pos, neg = batch.unbind(1)
            loss = -nn.functional.logsigmoid(model(u, pos) - model(u, neg)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} bpr {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
