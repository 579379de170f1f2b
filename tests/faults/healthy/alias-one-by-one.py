import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Windows of a sensor, already as long as the net wants them."""

    def __init__(self, n=60):
        g = torch.Generator().manual_seed(3)
        self.labels = torch.randint(0, 2, (n,), generator=g)
        self.store = [torch.randn(16, 24, generator=g) + 0.5 * self.labels[i] for i in range(n)]

    def __len__(self):
        return len(self.store)

    def __getitem__(self, i):
        return self.store[i], self.labels[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Windows(), batch_size=None, shuffle=True)
    net = nn.Sequential(nn.Flatten(0), nn.Linear(16 * 24, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(4):
        total = 0.0
        for x, y in loader:
            x = x + 0.3 * torch.randn_like(x)
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
