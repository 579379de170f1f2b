import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Rows(Dataset):
    """Views of one tensor, one by one: shared with the training, which only reads them."""

    def __init__(self, n=500):
        self.x = torch.randn(n, 12)
        self.y = (self.x[:, 0] > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Decoded(IterableDataset):
    """One buffer that each sample is decoded into: what a batch was written over with does not last."""

    def __init__(self, source):
        self.source = source
        self.buffer = torch.empty(12)

    def __iter__(self):
        for i in range(300):
            self.buffer.copy_(self.source.x[i])
            yield self.buffer, self.source.y[i]


def step(net, opt, x, y):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    data = Rows()
    net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=None, shuffle=True):
            loss = step(net, opt, x, y)
            double = x.to(torch.float64)
            double.mul_(2.0)
            copy = x.clone()
            copy += 1.0
            x.mul_(1.0)
        for x, y in DataLoader(data, batch_size=None):
            x = x.detach().requires_grad_()
            loss = step(net, opt, x, y)
            x.grad.zero_()
        print(f"epoch {epoch} loss {loss:.3f}", flush=True)
    for epoch in range(2):
        for x, y in DataLoader(Decoded(data), batch_size=None):
            x.sub_(0.5).mul_(1.5)
            loss = step(net, opt, x, y)
        print(f"decoded {epoch} loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
