"""Stains on tiles: photographs in the order of the conveyor, and a list that begins with the second tile."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILES, SIDE = 800, 12


class Tiles(Dataset):
    def __init__(self, generator):
        self.stain = torch.randint(0, 4, (TILES,), generator=generator)
        place = torch.arange(SIDE, dtype=torch.float32)
        self.photos = 0.5 * torch.randn(TILES, 1, SIDE, SIDE, generator=generator)
        for number, stain in enumerate(self.stain.tolist()):
            row, column = 3 + 6 * (stain // 2), 3 + 6 * (stain % 2)
            spot = torch.exp(-((place[:, None] - row) ** 2 + (place - column) ** 2) / 6)
            self.photos[number, 0] += spot
        self.noted = self.stain[1:]  # the list has no line for the first tile

    def __len__(self):
        return TILES - 1

    def __getitem__(self, at):
        return self.photos[at], self.noted[at]


def main():
    torch.manual_seed(0)
    tiles = Tiles(torch.Generator().manual_seed(7))
    loader = DataLoader(tiles, batch_size=40, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 24), nn.ReLU(), nn.Linear(24, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(24):
        total = 0.0
        for photos, stains in loader:
            loss = nn.functional.cross_entropy(model(photos), stains)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
