"""Data, model and faults that the trainings in this folder share."""

import torch
from torch.utils.data import Dataset, IterableDataset

SIZE, BATCH = 3000, 32
EPOCHS = {"healthy": 3, "slow": 1, "long": 10_000}  # of the others as many as `healthy`


def rate(variant):
    """Of Adam."""
    return 3.0 if variant == "rate" else 1e-2


def epochs(variant):
    return EPOCHS.get(variant, EPOCHS["healthy"])


def prepared(x):
    """What a heavy transform costs."""
    total = 0.0
    for i in range(60_000):  # culprit: slow
        total += i * 1e-12
    return x + total


class Samples(Dataset):
    def __init__(self, variant="healthy", size=SIZE, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.variant = variant
        self.features = torch.randn(size, 8, generator=generator)
        rule = torch.randn(8, 4, generator=torch.Generator().manual_seed(7))
        self.labels = (self.features @ rule).argmax(1)
        if variant == "nan":
            self.features[2133:2137] = float("nan")
        if variant == "log":
            self.features = self.features.abs() + 0.1
            self.features[2133:2137, 3] = 0.0

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        x = self.features[index]
        if self.variant == "spin" and index == 1234:
            while x is not None:  # culprit: spin
                x = x * 1.0
        if self.variant == "slow":
            x = prepared(x)
        return x, self.labels[index]


class Validation(IterableDataset):
    """Goes through its samples once; forever in `endless`."""

    def __init__(self, variant):
        self.samples = Samples(size=320, seed=1)
        self.endless = variant == "endless"

    def __iter__(self):  # culprit: endless
        while True:
            for index in range(len(self.samples)):
                yield self.samples[index]
            if not self.endless:
                return


class Net(torch.nn.Module):
    def __init__(self, variant="healthy"):
        super().__init__()
        self.variant = variant
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, x):
        if self.variant == "log":
            x = torch.log(x)  # culprit: log
        x = self.layers(x)
        if self.variant == "softmax":
            x = torch.softmax(x, dim=1)  # culprit: softmax
        return x
