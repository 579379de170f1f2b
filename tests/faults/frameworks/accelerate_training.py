"""Accelerate: python accelerate_training.py VARIANT."""

import sys

import torch
from accelerate import Accelerator
from parts import BATCH, Net, Samples, Validation, epochs, rate
from torch.utils.data import DataLoader


def main(variant):
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(variant))
    loader = DataLoader(Samples(variant), BATCH, shuffle=True, num_workers=2)
    validation = DataLoader(Validation(variant), BATCH)
    model, optimizer, loader, validation = accelerator.prepare(model, optimizer, loader, validation)
    for epoch in range(epochs(variant)):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)  # backward
            optimizer.step()
        model.eval()
        total = 0.0
        for x, y in validation:
            with torch.no_grad():
                total += torch.nn.functional.cross_entropy(model(x), y).item()
        print(epoch, loss.item(), total, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
