"""Character model over a memory-like text file, read in blocks until the reader says it is through."""

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog and runs into the forest again . " * 300
CHARS = sorted(set(TEXT))


class BlockReader:
    def __init__(self, text, block=65, per_batch=16):
        self.data = torch.tensor([CHARS.index(c) for c in text])
        self.block = block
        self.per_batch = per_batch
        self.position = 0

    def next_batch(self):
        need = self.block * self.per_batch
        if self.position + need > len(self.data):
            self.position = 0
            return None
        rows = self.data[self.position : self.position + need].view(self.per_batch, self.block)
        self.position += need
        return rows


class CharNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(len(CHARS), width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, len(CHARS))

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def train_epoch(net, opt, reader):
    losses = []
    for rows in iter(reader.next_batch, None):
        logits = net(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(CHARS)), rows[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    net = CharNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    reader = BlockReader(TEXT)
    for epoch in range(5):
        print("epoch", epoch, "loss", round(train_epoch(net, opt, reader), 4), flush=True)


if __name__ == "__main__":
    main()
