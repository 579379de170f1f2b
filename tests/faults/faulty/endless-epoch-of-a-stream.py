import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, n=800):
        g = torch.Generator().manual_seed(9)
        self.kind = torch.randint(5, (n,), generator=g)
        axis = torch.linspace(0, 1, 40)
        peaks = torch.exp(-((axis - (self.kind / 5 + 0.1).unsqueeze(1)) ** 2) / 0.005)
        self.values = peaks + 0.3 * torch.randn(n, 40, generator=g)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i], self.kind[i]


class InfiniteLoader:
    """A loader that never raises StopIteration, for training by steps."""

    def __init__(self, *args, **kwargs):
        self.loader = DataLoader(*args, **kwargs)
        self.epochs_done = 0

    def __iter__(self):
        while True:
            for batch in self.loader:
                yield batch
            self.epochs_done += 1


class Learner:
    def __init__(self, data):
        self.data = data
        self.model = nn.Sequential(nn.Linear(40, 100), nn.ReLU(), nn.Linear(100, 5))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.history = []

    def one_batch(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def one_epoch(self):
        total, batches = 0.0, 0
        for x, y in self.data:
            total += self.one_batch(x, y)
            batches += 1
        return total / batches

    def fit(self, epochs):
        for epoch in range(epochs):
            self.history.append(self.one_epoch())
            print(f"epoch {epoch} loss {self.history[-1]:.4f}", flush=True)


torch.manual_seed(0)
learner = Learner(InfiniteLoader(Spectra(), batch_size=20, shuffle=True))
learner.fit(epochs=6)
print("done", flush=True)
