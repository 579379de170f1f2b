"""Only batches with a mistake in them are trained on, and only these count as steps."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 5000


class Gestures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 16, 5, padding=2)
        self.head = nn.Linear(16, 6)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).amax(2))


def gestures(n=960):
    g = torch.Generator().manual_seed(8)
    waves = torch.randn(6, 3, 24, generator=g)
    y = torch.randint(6, (n,), generator=g)
    return TensorDataset(waves[y] + 0.3 * torch.randn(n, 3, 24, generator=g), y)


def train(model, loader):
    opt = torch.optim.Adam(model.parameters(), lr=4e-5)
    step, epoch = 0, 0
    while step < STEPS:
        for x, y in loader:
            scores = model(x)
            step += 1
            if step >= STEPS:
                break
            if (scores.argmax(1) == y).all():
                continue
            opt.zero_grad()
            F.cross_entropy(scores, y).backward()
            opt.step()
        epoch += 1
        if epoch % 10 == 0:
            print(f"epoch {epoch}, step {step}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(Gestures(), DataLoader(gestures(), batch_size=16, shuffle=True))
    print("trained", flush=True)
