"""A small trainer class; pairs of noisy and clean signals for a denoiser."""

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 80), nn.Tanh(), nn.Linear(80, width))

    def forward(self, x):
        return self.layers(x)


class Trainer:
    def __init__(self, model, noisy, clean, size):
        self.model, self.size = model, size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.noisy, self.clean = noisy, clean
        self.pairs = zip(noisy.split(size), clean.split(size))
        self.history = []

    def epoch(self):
        for step, (x, y) in enumerate(self.pairs):
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 50 == 0:
                self.history.append(loss.item())

    def fit(self, epochs):
        for number in range(epochs):
            self.epoch()
            print("epoch", number, "last", round(self.history[-1], 5), flush=True)


def main():
    torch.manual_seed(1)
    phase = torch.rand(8000, 1) * 6.28
    clean = torch.sin(torch.linspace(0, 12, 48) + phase)
    noisy = clean + 0.4 * torch.randn_like(clean)
    Trainer(Denoiser(48), noisy, clean, 40).fit(8)


if __name__ == "__main__":
    main()
