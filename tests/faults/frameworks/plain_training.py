"""A bare loop, to compare with: python plain_training.py VARIANT."""

import sys

import torch
from parts import BATCH, Net, Samples, Validation, epochs, rate
from torch.utils.data import DataLoader


def main(variant):
    torch.manual_seed(0)
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(variant))
    loader = DataLoader(Samples(variant), BATCH, shuffle=True, num_workers=2)
    validation = DataLoader(Validation(variant), BATCH)
    for epoch in range(epochs(variant)):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        total = 0.0
        for x, y in validation:
            with torch.no_grad():
                total += torch.nn.functional.cross_entropy(model(x), y).item()
        print(epoch, loss.item(), total, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
