"""fastai: python fastai_training.py VARIANT."""

import sys

import torch
from fastai.basics import DataLoader, DataLoaders, Learner
from fastai.callback import progress  # noqa: F401  (it gives `no_bar`)
from parts import BATCH, Net, Samples, epochs, rate


def main(variant):
    torch.manual_seed(0)
    training = DataLoader(Samples(variant), bs=BATCH, shuffle=True, num_workers=2)
    validation = DataLoader(Samples(size=320, seed=1), bs=BATCH, num_workers=0)
    learner = Learner(DataLoaders(training, validation), Net(variant), loss_func=torch.nn.CrossEntropyLoss(), lr=rate(variant))
    with learner.no_bar():
        learner.fit(epochs(variant))
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
