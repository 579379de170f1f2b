import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, n=480, size=24):
        g = torch.Generator().manual_seed(0)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(n):
            cy, cx = torch.randint(5, size - 5, (2,), generator=g).tolist()
            r = int(torch.randint(3, 6, (1,), generator=g))
            mask = (((yy - cy) ** 2 + (xx - cx) ** 2) < r * r).float()
            img = mask * 0.8 + 0.4 * torch.randn(size, size, generator=g)
            self.items.append((img[None], mask[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = conv(1, 8), conv(8, 16)
        self.u1 = conv(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        up = F.interpolate(b, scale_factor=2)
        return self.out(self.u1(torch.cat([a, up], 1)))


def train(model, loader, epochs=6, accum_steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        optimizer.zero_grad()
        running = 0.0
        for i, (img, mask) in enumerate(loader):
            loss = F.binary_cross_entropy_with_logits(model(img), mask)
            (loss / accum_steps).backward()
            if (i + 1) % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            running += loss.item()
        print(f"epoch {epoch} bce {running / len(loader):.4f}", flush=True)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Blobs(), batch_size=16, shuffle=True)
    train(TinyUNet(), loader)


if __name__ == "__main__":
    main()
