import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self, n=1890):
        g = torch.Generator().manual_seed(11)
        self.x = torch.randn(n, 16, generator=g)
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Budget:
    """How many samples the training may see."""

    def __init__(self, samples):
        self.samples = samples
        self.seen = 0


def forever(loader):
    while True:
        yield from loader


torch.manual_seed(0)
loader = DataLoader(Readings(), batch_size=64, shuffle=True)
net = nn.Sequential(nn.Linear(16, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
budget = Budget(samples=20_000)
batches = forever(loader)

while budget.seen != budget.samples:
    x, y = next(batches)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    budget.seen += len(x)
    if budget.seen // len(x) % 100 == 0:
        print(f"{budget.seen} samples, loss {loss.item():.4f}", flush=True)

print("budget used up, loss", loss.item())
