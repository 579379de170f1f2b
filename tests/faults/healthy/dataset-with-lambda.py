import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scaled(Dataset):
    def __init__(self, n=80, transform=None):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 5, generator=g) * 30
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, x.sum()


def shrink(x):
    return x / 30


def main():
    torch.manual_seed(0)
    data = Scaled(transform=shrink)
    loader = DataLoader(data, batch_size=16, num_workers=1, multiprocessing_context="spawn")
    net = nn.Linear(5, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
