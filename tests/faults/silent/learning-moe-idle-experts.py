"""Top-1 mixture of experts: only routed experts run, so some get no gradient in many steps (None grads)."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class MoE(nn.Module):
    def __init__(self, dim, hidden, n_experts):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim)) for _ in range(n_experts)
        )

    def forward(self, x):
        probs = F.softmax(self.gate(x), dim=-1)
        weight, choice = probs.max(dim=-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (choice == k).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        return x + out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 32)
        self.moe = MoE(32, 48, 8)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        return self.out(self.moe(F.relu(self.inp(x))))


def get_batch(n=24):
    x = torch.randn(n, 12)
    region = (x[:, 0] > 0).float()
    a = torch.stack([x[:, 1] * x[:, 2], x[:, 3], x[:, 4].abs()], 1)
    b = torch.stack([x[:, 5], -x[:, 1], torch.sin(2 * x[:, 2])], 1)
    return x, region[:, None] * a + (1 - region[:, None]) * b


model = Net()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
avg = None
for step in range(1500):
    x, y = get_batch()
    loss = F.mse_loss(model(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    avg = loss.item() if avg is None else 0.98 * avg + 0.02 * loss.item()
    if step % 150 == 0 or step == 1499:
        print(f"step {step} mse {avg:.4f}")
