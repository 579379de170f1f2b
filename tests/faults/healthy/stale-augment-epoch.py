import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class AugmentedImages(Dataset):
    """Augmentation depends on the epoch so that every epoch sees other crops."""

    def __init__(self, n=1200, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.seed = seed
        self.epoch = 0
        self.y = torch.randint(0, 4, (n,), generator=g)
        self.x = torch.randn(n, 1, 20, 20, generator=g) * 0.6
        for k in range(4):
            self.x[self.y == k, :, 4 + k * 3:7 + k * 3, :] += 0.6

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + 1_000_003 * self.epoch + i)
        dx, dy = torch.randint(0, 5, (2,), generator=g).tolist()
        crop = self.x[i, :, 2:18, dy:dy + 16]
        if dx % 2:
            crop = crop.flip(-1)
        return crop + 0.1 * torch.randn(crop.shape, generator=g), self.y[i]


def get_model():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((8, 1)),
                         nn.Flatten(), nn.Linear(256, 4))


def main():
    torch.manual_seed(0)
    dataset = AugmentedImages()
    loader = DataLoader(dataset, batch_size=24, shuffle=True, num_workers=2)
    model = get_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(12):
        dataset.set_epoch(epoch)
        total, hits = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(dataset):.4f} acc {hits / len(dataset):.3f}", flush=True)


if __name__ == "__main__":
    main()
