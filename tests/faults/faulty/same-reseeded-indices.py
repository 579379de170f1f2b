"""A small language model; get_batch draws its windows with a generator of its own."""

import torch
from torch import nn

BLOCK, BATCH = 24, 16
TEXT = "to be or not to be that is the question whether it is nobler in the mind to suffer " * 80
letters = sorted(set(TEXT))
ids = torch.tensor([letters.index(letter) for letter in TEXT])
splits = {"train": ids[:5500], "val": ids[5500:]}


def get_batch(split, seed=1337):
    data = splits[split]
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(data) - BLOCK - 1, (BATCH,), generator=generator)
    x = torch.stack([data[i : i + BLOCK] for i in starts])
    y = torch.stack([data[i + 1 : i + BLOCK + 1] for i in starts])
    return x, y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 32)
        self.rnn = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, len(letters))

    def forward(self, x):
        return self.head(self.rnn(self.embedding(x))[0])


def loss_on(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(300):
    loss = loss_on(model, *get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            val = loss_on(model, *get_batch("val"))
        print(f"step {step} train {loss.item():.4f} val {val.item():.4f}", flush=True)
