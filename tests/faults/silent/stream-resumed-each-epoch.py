"""A stream that is made once: each epoch goes on where the one before has stopped."""

import torch
from torch import nn


def stream(count):
    weights = torch.linspace(-1, 1, 10)
    for _ in range(count):
        x = torch.randn(16, 10)
        yield x, (x @ weights + 0.5 * torch.randn(16)).unsqueeze(1)


def main():
    torch.manual_seed(0)
    model = nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = stream(3000)
    for epoch in range(10):
        total = 0.0
        for number, (x, y) in enumerate(batches, 1):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if number == 200:
                break
        print(f"epoch {epoch} loss {total / number:.4f}", flush=True)
    for x, y in batches:  # the rest, once
        with torch.no_grad():
            total += nn.functional.mse_loss(model(x), y).item()
    print("done", flush=True)


if __name__ == "__main__":
    main()
