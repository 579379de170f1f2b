import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, n=2400, vocab=200, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(5, 40, (n,), generator=g).tolist()
        self.items = [torch.randint(2, vocab, (k,), generator=g) for k in self.lengths]
        self.labels = [int((s < vocab // 2).float().mean() > 0.5) for s in self.items]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], self.labels[i]


class BucketBatchSampler:
    """Groups sentences of similar length so that little padding is needed."""

    def __init__(self, lengths, batch_size, bucket_width=5, seed=0):
        self.batch_size = batch_size
        self.rng = random.Random(seed)
        self.buckets = {}
        for i, k in enumerate(lengths):
            self.buckets.setdefault(k // bucket_width, []).append(i)

    def __len__(self):
        return sum((len(b) + self.batch_size - 1) // self.batch_size for b in self.buckets.values())

    def _make_batches(self):
        batches = []
        for bucket in self.buckets.values():
            self.rng.shuffle(bucket)
            batches += [bucket[k:k + self.batch_size] for k in range(0, len(bucket), self.batch_size)]
        self.rng.shuffle(batches)
        return batches

    def __iter__(self):
        batches = self._make_batches()
        while batches:
            yield batches.pop()
            if not batches:
                batches = self._make_batches()


def collate(items):
    seqs, labels = zip(*items)
    return pad_sequence(seqs, batch_first=True), torch.tensor(labels)


class Tagger(nn.Module):
    def __init__(self, vocab=200):
        super().__init__()
        self.emb = nn.Embedding(vocab, 48, padding_idx=0)
        self.rnn = nn.GRU(48, 64, batch_first=True)
        self.out = nn.Linear(64, 2)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h.mean(1))


def main():
    torch.manual_seed(0)
    data = Sentences()
    loader = DataLoader(data, batch_sampler=BucketBatchSampler(data.lengths, 24), collate_fn=collate, num_workers=2)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        running = 0.0
        for i, (ids, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            if i % 50 == 49:
                print(f"epoch {epoch} batch {i + 1} loss {running / 50:.4f}", flush=True)
                running = 0.0
        print(f"epoch {epoch} done", flush=True)


if __name__ == "__main__":
    main()
