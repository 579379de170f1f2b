import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class LesionPatches(Dataset):
    """Random 16x16 patches that contain some foreground."""

    def __init__(self, n=320, size=64, patch=16):
        rng = np.random.default_rng(3)
        self.images = rng.normal(size=(n, size, size)).astype("float32")
        self.masks = np.zeros((n, size, size), dtype="float32")
        for i in range(n):
            r, c = rng.integers(8, size - 24, size=2)
            self.masks[i, r : r + 16, c : c + 16] = 1
        self.masks[173] = 0
        self.images += 0.8 * self.masks
        self.patch = patch
        self.keep = np.flatnonzero(self.masks.any(axis=(1, 2)))

    def __len__(self):
        return len(self.keep)

    def crop(self, image, mask, rng):
        while True:
            r, c = rng.integers(0, image.shape[0] - self.patch, size=2)
            window = mask[r : r + self.patch, c : c + self.patch]
            if window.mean() > 0.02:
                return image[r : r + self.patch, c : c + self.patch], window

    def __getitem__(self, i):
        i = self.keep[i]
        rng = np.random.default_rng(i)
        image, mask = self.crop(self.images[i], self.masks[i], rng)
        return torch.from_numpy(image)[None], torch.from_numpy(mask)[None]


def main():
    torch.manual_seed(0)
    loader = DataLoader(LesionPatches(), batch_size=16, shuffle=True, num_workers=2)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(4):
        for step, (image, mask) in enumerate(loader):
            loss = nn.functional.binary_cross_entropy_with_logits(net(image), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
