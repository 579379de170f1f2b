"""Steps that take longer because the sequences do, and later vary at random: a curriculum over a DataLoader."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, count=9600):
        self.lengths = [min(60, 4 + index // 150) for index in range(count)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        length = self.lengths[index] if self.lengths[index] < 60 else 30 + index % 31
        return torch.randint(0, 100, (length,), generator=generator)


def pad(samples):
    return nn.utils.rnn.pad_sequence(samples, batch_first=True)


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(100, 24), "rnn": nn.GRU(24, 48, batch_first=True), "out": nn.Linear(48, 100)})
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, tokens in enumerate(DataLoader(Sentences(), batch_size=16, collate_fn=pad)):
        states, _ = model["rnn"](model["embed"](tokens[:, :-1]))
        loss = nn.functional.cross_entropy(model["out"](states).transpose(1, 2), tokens[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 200 == 0:
            print(f"step {step} length {tokens.size(1)} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
