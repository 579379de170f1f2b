"""webdataset, shards of a folder: python webdataset_training.py VARIANT."""

import io
import sys
import tarfile

import torch
import webdataset as wds
from parts import BATCH, Net, Samples, Validation, epochs, prepared
from torch.utils.data import DataLoader

SHARDS = 4


def write_shards(samples):
    for shard in range(SHARDS):
        with tarfile.open(f"shard-{shard}.tar", "w") as file:
            for index in range(shard, len(samples), SHARDS):
                content = io.BytesIO()
                torch.save((samples.features[index].clone(), samples.labels[index].clone(), index), content)
                about = tarfile.TarInfo(f"{index:06d}.pth")
                about.size = len(content.getvalue())
                file.addfile(about, io.BytesIO(content.getvalue()))


def decoder(variant):
    def decode(sample):
        x, y, index = torch.load(io.BytesIO(sample["pth"]))
        if variant == "spin" and index == 1234:
            while x is not None:  # culprit: spin
                x = x * 1.0
        if variant == "slow":
            x = prepared(x)
        return x, y

    return decode


def main(variant):
    torch.manual_seed(0)
    write_shards(Samples(variant))
    model = Net(variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    shards = [f"shard-{shard}.tar" for shard in range(SHARDS)]
    dataset = wds.WebDataset(shards, shardshuffle=False).shuffle(100).map(decoder(variant)).batched(BATCH)
    loader = wds.WebLoader(dataset, batch_size=None, num_workers=2)
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
