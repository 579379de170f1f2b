import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def rounds(loader):
    for _ in itertools.count():
        yield from loader


def standardised(batches, mean, std):
    for x, y in batches:
        yield (x - mean) / std, y


def fit_epoch(model, batches, optimizer, steps):
    model.train()
    total = 0.0
    for _ in range(steps):
        x, y = next(batches)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


def evaluate(model, batches):
    model.eval()
    errors = []
    with torch.no_grad():
        for x, y in batches:
            errors.append((model(x) - y).abs().mean().item())
    return sum(errors) / len(errors)


def main():
    torch.manual_seed(0)
    x = 5 + 3 * torch.randn(1100, 7)
    y = x.sin().sum(1, keepdim=True)
    mean, std = x.mean(0), x.std(0)
    train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=25, shuffle=True)
    test = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=10)
    train_batches = standardised(rounds(train), mean, std)
    model = nn.Sequential(nn.Linear(7, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        loss = fit_epoch(model, train_batches, optimizer, steps=40)
        print(f"epoch {epoch} loss {loss:.3f}", flush=True)
        error = evaluate(model, standardised(test, mean, std))
        print(f"epoch {epoch} error {error:.3f}", flush=True)


main()
