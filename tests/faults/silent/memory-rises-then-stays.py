import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class CachedScans(Dataset):
    """Decoding is slow, so every scan is kept after the first read."""

    def __init__(self, n=800):
        self.n = n
        self.cache = {}

    def __len__(self):
        return self.n

    def decode(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(1, 128, 256, generator=g)
        x[:, (i % 4) * 32:(i % 4) * 32 + 32] += 0.2
        return x, i % 4

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = self.decode(i)
        return self.cache[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(CachedScans(), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Conv2d(1, 8, 5, stride=4, padding=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1),
                          nn.ReLU(), nn.AdaptiveAvgPool2d((8, 1)), nn.Flatten(), nn.Linear(128, 4))
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    for epoch in range(9):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
