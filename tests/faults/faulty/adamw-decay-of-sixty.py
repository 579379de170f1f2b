"""AdamW with the decay that the authors of another code gave for its square of the rate."""

import torch
from torch import nn


def profiles(count=1600):
    g = torch.Generator().manual_seed(21)
    x = torch.randn(count, 24, generator=g)
    y = (x[:, :12].sum(1) + 2 * torch.tanh(x[:, 12:]).sum(1) > 0).long()
    return x, y


def main():
    torch.manual_seed(0)
    x, y = profiles()
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=60.0)
    for epoch in range(12):
        losses = []
        for rows in torch.randperm(len(y)).split(40):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
