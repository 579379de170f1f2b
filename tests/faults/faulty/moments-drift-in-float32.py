"""Will the pump trip? Raw sensor readings are normalised by running moments inside the model."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)

LEVEL = torch.tensor([98000.0, 340.0, 50.0])  # pressure, temperature, vibration
SPREAD = torch.tensor([80.0, 9.0, 12.0])


class Moments(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("total", torch.zeros(width))
        self.register_buffer("squares", torch.zeros(width))

    def forward(self, x):
        if self.training:
            self.seen += len(x)
            self.total += x.sum(0)
            self.squares += (x * x).sum(0)
        mean = self.total / self.seen
        spread = torch.sqrt(self.squares / self.seen - mean * mean)
        return (x - mean) / (spread + 1e-3)


def readings(count):
    z = torch.randn(count, 3)
    return LEVEL + SPREAD * z, (1.3 * z[:, 0] - z[:, 1] + 0.6 * z[:, 2] > 0.4).float()


def main():
    model = nn.Sequential(Moments(3), nn.Linear(3, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, 2001):
        x, trips = readings(512)
        loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), trips)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
