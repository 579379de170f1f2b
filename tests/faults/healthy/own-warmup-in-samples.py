"""A rate that is warmed up by hand: the length of the warm-up is given in samples, the counter counts steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PEAK, WARMUP = 0.05, 4_000


def rate_at(seen):
    return PEAK * min(1.0, (seen + 1) / WARMUP)


def letters(count=2000):
    g = torch.Generator().manual_seed(1)
    y = torch.randint(0, 5, (count,), generator=g)
    return torch.randn(5, 18, generator=g)[y] + 0.8 * torch.randn(count, 18, generator=g), y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*letters()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=PEAK, momentum=0.9)
    step = 0
    for epoch in range(8):
        total = 0.0
        for x, y in loader:
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += len(x)
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
