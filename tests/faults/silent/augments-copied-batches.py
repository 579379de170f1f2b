import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Store(Dataset):
    """Tensors kept in a list and given out as they are; the default collate function stacks, and so copies, them."""

    def __init__(self, n=400):
        self.labels = torch.arange(n) % 2
        self.data_store = [torch.randn(10) + 1.5 * self.labels[i] for i in range(n)]

    def __len__(self):
        return len(self.data_store)

    def __getitem__(self, i):
        return self.data_store[i], self.labels[i]


def main():
    torch.manual_seed(0)
    data = Store()
    before = [x.clone() for x in data.data_store]
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        for x, y in DataLoader(data, batch_size=10, shuffle=True):
            x[0].add_(torch.rand(10))
            x *= 1.1
            x[torch.rand(10) < 0.2] = 0.0
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    assert all(torch.equal(a, b) for a, b in zip(before, data.data_store, strict=True))


if __name__ == "__main__":
    main()
