import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 6


class Digits(Dataset):
    """The annotators used class 6 for a few odd ones."""

    def __init__(self, n=300):
        g = torch.Generator().manual_seed(1)
        self.x = torch.randn(n, 10, generator=g)
        self.y = torch.randint(0, CLASSES, (n,), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Digits(), batch_size=25, shuffle=True, num_workers=2)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        for x, y in loader:
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
