from itertools import cycle, islice

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, n=800, vocab=80):
        g = torch.Generator().manual_seed(0)
        self.rows = [torch.randint(0, vocab, (24,), generator=g) for _ in range(n)]

    def __iter__(self):
        for ids in cycle(self.rows):
            yield ids, int((ids < 30).sum() > 8)


class Classifier(nn.Module):
    def __init__(self, vocab=80):
        super().__init__()
        self.emb = nn.Embedding(vocab, 48)
        self.rnn = nn.GRU(48, 64, batch_first=True)
        self.fc = nn.Linear(64, 2)

    def forward(self, ids):
        return self.fc(self.rnn(self.emb(ids))[0].mean(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Lines(), batch_size=16)
    model = Classifier()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    total = 0.0
    for i, (ids, y) in enumerate(islice(loader, 900), 1):
        loss = nn.functional.cross_entropy(model(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        if i % 100 == 0:
            print(f"{i} mean loss {total / 100:.4f}", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
