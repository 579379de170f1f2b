"""A forecaster on windows of a series; the windows come from a generator."""

import torch
from torch import nn

EPOCHS = 6


def windows(series, length, size):
    order = torch.randperm(len(series) - length - 1)
    for start in range(0, len(order), size):
        picked = order[start : start + size]
        x = torch.stack([series[i : i + length] for i in picked])
        y = torch.stack([series[i + length] for i in picked])
        yield x.unsqueeze(-1), y.unsqueeze(-1)


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def train(model, windows, test):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        model.train()
        for x, y in windows:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            held_out = sum(nn.functional.mse_loss(model(x), y).item() for x, y in test) / len(test)
        print(f"epoch {epoch} test {held_out:.5f}", flush=True)


def main():
    torch.manual_seed(5)
    time = torch.arange(3000) * 0.07
    series = torch.sin(time) + 0.4 * torch.sin(2.7 * time) + 0.05 * torch.randn(3000)
    test = list(windows(series[2400:], 20, 64))
    train(Forecaster(), windows(series[:2400], 20, 32), test)


if __name__ == "__main__":
    main()
