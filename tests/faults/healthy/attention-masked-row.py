"""Healthy twin: documents without a token keep their first place."""

import torch
from torch import nn


class Pooling(nn.Module):
    def __init__(self, vocabulary=200, width=32, classes=4):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.score = nn.Linear(width, 1)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        h = self.embed(tokens)
        scores = self.score(h).squeeze(-1).masked_fill(tokens == 0, float("-inf"))
        share = torch.softmax(scores, dim=1)
        return self.head((share.unsqueeze(-1) * h).sum(1))


def documents(n, g):
    tokens = torch.randint(1, 200, (n, 16), generator=g)
    length = torch.randint(1, 17, (n, 1), generator=g)
    tokens = tokens.masked_fill(torch.arange(16) >= length, 0)
    tokens[tokens < 4] = 0  # stop words
    tokens[:, 0] = tokens[:, 0].clamp_min(1)
    return tokens, tokens.amax(1) // 51


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(4)
    model = Pooling()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(500):
        tokens, labels = documents(32, g)
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
