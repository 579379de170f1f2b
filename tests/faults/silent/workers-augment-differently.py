import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class AugmentedStream(IterableDataset):
    """Every worker goes over all images; the random crop and noise make the copies different."""

    def __init__(self, n=400):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(0, 3, (n,), generator=g)
        self.x = torch.randn(n, 1, 24, 24, generator=g) * 0.5
        for k in range(3):
            self.x[self.y == k, :, k * 8:k * 8 + 8] += 0.5

    def augment(self, img):
        c = torch.randint(0, 5, (1,)).item()
        img = img[:, :, c:c + 20]
        if torch.rand(()) < 0.5:
            img = img.flip(-1)
        return img + 0.2 * torch.randn_like(img)

    def __iter__(self):
        for i in torch.randperm(len(self.y)).tolist():
            time.sleep(0.001)
            yield self.augment(self.x[i]), self.y[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(AugmentedStream(), batch_size=16, num_workers=2)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                          nn.ReLU(), nn.AdaptiveAvgPool2d((3, 1)), nn.Flatten(), nn.Linear(96, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(14):
        total = n = 0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            n += len(y)
        print(f"epoch {epoch} views {n} loss {total / n:.4f}", flush=True)


if __name__ == "__main__":
    main()
