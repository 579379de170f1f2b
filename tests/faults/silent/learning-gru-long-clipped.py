"""A GRU over 120-step sequences (running sum of marked inputs), gradients clipped at norm 1."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

T = 120


def get_batch(n=32):
    values = torch.randn(n, T)
    marks = (torch.rand(n, T) < 0.15).float()
    target = (values * marks).cumsum(1)
    return torch.stack([values, marks], dim=-1), target / 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.fc(h).squeeze(-1)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
smooth = None
for step in range(220):
    x, y = get_batch()
    loss = F.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    optimizer.step()
    smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
    if step % 25 == 0 or step == 219:
        print(f"step {step} loss {smooth:.4f} grad norm {norm:.3f}")
