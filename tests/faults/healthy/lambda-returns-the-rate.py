"""Which of five kinds a walk is: a recurrent classifier with a warm-up, then a slow decay."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(1)
KINDS = 5


def walks(count):
    kind = torch.randint(KINDS, (count,))
    drift = (kind.float() - 2).view(-1, 1) * 0.3
    steps = drift + 0.5 * torch.randn(count, 12)
    return steps.cumsum(1).unsqueeze(2) / 3, kind


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.out = nn.Linear(32, KINDS)

    def forward(self, walk):
        return self.out(self.gru(walk)[0][:, -1])


class Schedule:
    def __init__(self, peak=2e-3, warmup=50):
        self.peak, self.warmup = peak, warmup

    def at(self, step):
        step = step + 1
        return min(step / self.warmup, (self.warmup / step) ** 0.5)


model, schedule = Reader(), Schedule()
optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.peak)
scheduler = LambdaLR(optimizer, schedule.at)
for step in range(1200):
    walk, kind = walks(64)
    loss = nn.functional.cross_entropy(model(walk), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        print(step, loss.item())
