"""A net that refines its own guess: all passes but the last are there to find where to start, and want no gradient."""

import torch
from torch import nn


class Refiner(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 96), nn.ReLU(), nn.Linear(96, width // 2))

    def forward(self, seen, guess):
        return self.net(torch.cat([seen, guess], 1))


def main():
    torch.manual_seed(6)
    mixing = torch.linalg.qr(torch.randn(16, 16)).Q
    refiner = Refiner()
    optimizer = torch.optim.Adam(refiner.parameters(), lr=2e-3)
    total = 0.0
    for number in range(1, 1001):
        true = torch.randn(64, 16).tanh()
        seen = true @ mixing + 0.05 * torch.randn(64, 16)
        guess = torch.zeros(64, 16)
        with torch.no_grad():
            for _ in range(int(torch.randint(0, 6, ()))):
                guess = refiner(seen, guess)
        loss = (refiner(seen, guess) - true).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if number % 200 == 0:
            print(f"{number}: {total / 200:.4f}", flush=True)
            total = 0.0


main()
