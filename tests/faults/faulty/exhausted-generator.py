import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


def read_rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(24, generator=torch.Generator().manual_seed(0))
    for _ in range(n):
        time.sleep(0.0005)
        x = torch.randn(24, generator=g)
        yield x, (x @ w / 5 + 0.1 * torch.randn((), generator=g)).unsqueeze(0)


class Table(IterableDataset):
    def __init__(self, n, seed, transform=None):
        super().__init__()
        self.n, self.seed = n, seed
        self.transform = transform
        self.rows = read_rows(n, seed)

    def __iter__(self):
        for x, y in self.rows:
            if self.transform is not None:
                x = self.transform(x)
            yield x, y


def clip(x):
    return x.clamp(-2.5, 2.5)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(Table(4000, 1, transform=clip), batch_size=20)
    x_val, y_val = zip(*read_rows(400, 2))
    x_val, y_val = clip(torch.stack(x_val)), torch.stack(y_val)
    net = nn.Sequential(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.Adam(net.parameters(), lr=3e-4)
    for epoch in range(4):
        losses = []
        for x, y in train_loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                print(f"epoch {epoch} step {len(losses)} loss {sum(losses[-50:]) / 50:.4f}", flush=True)
        with torch.no_grad():
            val = nn.functional.mse_loss(net(x_val), y_val).item()
        print(f"epoch {epoch} val mse {val:.4f}", flush=True)


if __name__ == "__main__":
    main()
