"""Which of seven kinds a spectrum is of: a deep plain net, whose updates are written out."""

import torch
import torch.nn.functional as F
from torch import nn

KINDS, BANDS = 7, 40


def spectra(n):
    kind = torch.randint(0, KINDS, (n,))
    centre = torch.linspace(4, 36, KINDS)[kind, None] + torch.randn(n, 1)
    band = torch.arange(BANDS).float()
    return torch.exp(-0.5 * ((band - centre) / 3.0) ** 2) + 0.15 * torch.randn(n, BANDS), kind


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)

    def forward(self, x):
        return F.relu(self.norm(self.linear(x)))


class Net(nn.Module):
    def __init__(self, width=40, depth=10, still_norms=True):
        super().__init__()
        self.still_norms = still_norms
        self.body = nn.Sequential(nn.Linear(BANDS, width), *(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, KINDS)

    def train(self, mode=True):
        super().train(mode)
        if mode and self.still_norms:
            for module in self.body.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        return self

    def forward(self, x):
        return self.head(self.body(x))


def update(model, speed, rate=0.02, momentum=0.9):
    for name, p in model.named_parameters():
        speed[name] = p.grad + momentum * speed.get(name, 0.0)
        p.data.add_(speed[name], alpha=-rate)
        p.grad = None


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    x, y = spectra(1600)
    model, speed = Net(), {}
    for epoch in range(40):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            update(model, speed)
            total += loss.item() * len(rows)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} loss {total / len(x):.4f}", flush=True)


if __name__ == "__main__":
    main()
