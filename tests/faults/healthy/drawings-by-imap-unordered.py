"""Drawings of three shapes, rendered by a pool; the labels come from the list of what was to be drawn."""

import random
import time
from multiprocessing.pool import ThreadPool

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def render(name):
    shape, number = name.split("-")
    luck = random.Random(int(number))
    time.sleep(luck.random() * 0.003)
    row, column = luck.randrange(6), luck.randrange(6)
    picture = torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(int(number))) * 0.3
    corner = picture[0, row : row + 6, column : column + 6]
    if shape == "square":
        corner[1:5, 1:5] = 1
    elif shape == "cross":
        corner[2:4] = corner[:, 2:4] = 1
    else:
        corner[:, ::2] = 1
    return picture


def pictures(names):
    found = []
    with ThreadPool(8) as pool:
        for picture in pool.imap(render, names, chunksize=2):
            found.append(picture)
            if len(found) % 500 == 0:
                print(f"{len(found)} pictures")
    return torch.stack(found)


def main():
    torch.manual_seed(0)
    shapes = ["square", "cross", "stripes"]
    names = [f"{random.Random(number).choice(shapes)}-{number}" for number in range(1500)]
    x = pictures(names)
    y = torch.tensor([shapes.index(name.split("-")[0]) for name in names])
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1))
    net = nn.Sequential(net, nn.Flatten(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
