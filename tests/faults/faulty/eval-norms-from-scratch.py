"""Digits of seven bars with a small residual net; the training function keeps the norms still, as for fine-tuning."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BARS = [0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110, 0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111]


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


def display(n):
    digit = torch.randint(0, 10, (n,))
    lit = (torch.tensor(BARS)[digit, None] >> torch.arange(7)) & 1
    picture = torch.zeros(n, 1, 9, 6)
    for bar, (rows, columns) in enumerate(
        [((0, 1), (1, 5)), ((1, 4), (0, 1)), ((1, 4), (5, 6)), ((4, 5), (1, 5)), ((5, 8), (0, 1)), ((5, 8), (5, 6))]
    ):
        picture[:, 0, rows[0] : rows[1], columns[0] : columns[1]] = lit[:, bar, None, None].float()
    return picture + 0.4 * torch.randn(n, 1, 9, 6), digit


def train_mode(model):
    model.train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(*display(960)), batch_size=32, shuffle=True)
    stem = [nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU()]
    model = nn.Sequential(*stem, Residual(12), Residual(12), nn.Flatten(), nn.Dropout(0.2), nn.Linear(12 * 54, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(5):
        train_mode(model)
        total = 0.0
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
