"""Segmentation with an expensive elastic deformation, done in the main process."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def smooth(field, rounds):
    for _ in range(rounds):
        field = (
            field + np.roll(field, 1, 0) + np.roll(field, -1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 1)
        ) / 5.0
    return field


class ElasticDeformation:
    def __init__(self, alpha=40.0, rounds=180):
        self.alpha = alpha
        self.rounds = rounds

    def __call__(self, image, mask, rng):
        h, w = image.shape
        dy = smooth(rng.uniform(-1, 1, (h, w)), self.rounds) * self.alpha
        dx = smooth(rng.uniform(-1, 1, (h, w)), self.rounds) * self.alpha
        yy, xx = np.mgrid[:h, :w]
        src_y = np.clip(yy + dy, 0, h - 1).astype(int)
        src_x = np.clip(xx + dx, 0, w - 1).astype(int)
        return image[src_y, src_x], mask[src_y, src_x]


class Cells(Dataset):
    def __init__(self, n=2000, size=384):
        self.n = n
        self.size = size
        self.transform = ElasticDeformation()

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = rng.normal(size=(self.size, self.size))
        mask = smooth(image, 10) > 0.02
        image, mask = self.transform(image + mask, mask, rng)
        crop = slice(64, 192)
        return torch.tensor(image[crop, crop]).float()[None], torch.tensor(mask[crop, crop]).float()[None]


def main():
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1)
    )
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = DataLoader(Cells(), batch_size=4, shuffle=True, num_workers=0)
    print("READY", flush=True)
    for epoch in range(100):
        for it, (image, mask) in enumerate(loader):
            loss = nn.functional.binary_cross_entropy_with_logits(net(image), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} it {it}/{len(loader)} bce {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
