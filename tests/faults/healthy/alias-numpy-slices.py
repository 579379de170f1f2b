import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler


class Spectra(Dataset):
    """Whole slices of one array: far quicker than row by row."""

    def __init__(self, n=4000):
        rng = np.random.default_rng(1)
        self.rows = rng.gamma(2.0, 30.0, (n, 64)).astype(np.float32)
        self.target = (self.rows[:, :8].mean(1) > 60).astype(np.int64)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, places):
        return self.rows[places[0]:places[-1] + 1], self.target[places[0]:places[-1] + 1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        x = x.div(100.0)
        return self.layers(x)


def main():
    torch.manual_seed(0)
    data = Spectra()
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), 100, drop_last=False))
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
