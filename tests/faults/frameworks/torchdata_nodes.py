"""torchdata's nodes: python torchdata_nodes.py VARIANT."""

import sys

import torch
from parts import BATCH, Net, Samples, Validation, epochs
from torch.utils.data import RandomSampler, default_collate
from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, ParallelMapper, SamplerWrapper


def main(variant):
    torch.manual_seed(0)
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    samples = Samples(variant)
    node = SamplerWrapper(RandomSampler(samples))
    node = ParallelMapper(node, samples.__getitem__, num_workers=2, method="process", multiprocessing_context="fork")
    loader = Loader(Mapper(Batcher(node, BATCH), default_collate))
    validation = Loader(Mapper(Batcher(IterableWrapper(Validation(variant)), BATCH), default_collate))
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
