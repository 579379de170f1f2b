from dataclasses import dataclass
from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Config:
    block: int = 32
    batch: int = 16
    steps_per_epoch: int = 100
    val_batches: int = 20
    epochs: int = 6
    lr: float = 2e-3


class TokenChunks(IterableDataset):
    def __init__(self, tokens, block, seed):
        self.tokens, self.block, self.seed = tokens, block, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        n = len(self.tokens) // self.block - 1
        while True:
            for k in torch.randperm(n, generator=g).tolist():
                s = k * self.block
                yield self.tokens[s:s + self.block], self.tokens[s + 1:s + self.block + 1]


class CharLM(nn.Module):
    def __init__(self, vocab=40, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, 96, batch_first=True)
        self.head = nn.Linear(96, vocab)

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


def make_tokens(n, seed):
    g = torch.Generator().manual_seed(seed)
    jump = torch.randint(0, 3, (n,), generator=g)
    return (torch.cumsum(jump + 1, 0)) % 40


def lm_loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def validate(model, loader, cfg):
    model.eval()
    total, n = 0.0, 0
    for x, y in islice(loader, cfg.val_batches):
        total += lm_loss(model, x, y).item()
        n += 1
    model.train()
    return total / n


def main():
    cfg = Config()
    torch.manual_seed(0)
    train_loader = DataLoader(TokenChunks(make_tokens(40000, 0), cfg.block, 0), batch_size=cfg.batch)
    val_loader = DataLoader(TokenChunks(make_tokens(8000, 1), cfg.block, 1), batch_size=cfg.batch)
    model = CharLM()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        total = 0.0
        for x, y in islice(train_loader, cfg.steps_per_epoch):
            loss = lm_loss(model, x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} train {total / cfg.steps_per_epoch:.4f}", flush=True)
        print(f"epoch {epoch} valid {validate(model, val_loader, cfg):.4f}", flush=True)


if __name__ == "__main__":
    main()
