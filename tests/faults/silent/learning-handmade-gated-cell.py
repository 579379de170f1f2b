"""A recurrent cell with sigmoid and tanh gates written by hand, unrolled in Python."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class GatedCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.n_hidden = n_hidden
        self.w_gate = nn.Parameter(torch.randn(n_in + n_hidden, 2 * n_hidden) / (n_in + n_hidden) ** 0.5)
        self.b_gate = nn.Parameter(torch.cat([torch.ones(n_hidden), torch.zeros(n_hidden)]))
        self.w_cand = nn.Parameter(torch.randn(n_in + n_hidden, n_hidden) / (n_in + n_hidden) ** 0.5)
        self.b_cand = nn.Parameter(torch.zeros(n_hidden))

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.n_hidden)
        for t in range(x.shape[1]):
            gates = torch.sigmoid(torch.cat([x[:, t], h], 1) @ self.w_gate + self.b_gate)
            keep, reset = gates.chunk(2, dim=1)
            cand = torch.tanh(torch.cat([x[:, t], reset * h], 1) @ self.w_cand + self.b_cand)
            h = keep * h + (1 - keep) * cand
        return h


def get_batch(n=32, length=20):
    """Which symbol came right after the marker?"""
    symbols = torch.randint(0, 6, (n, length))
    where = torch.randint(0, length - 1, (n,))
    x = F.one_hot(symbols, 7).float()
    x[torch.arange(n), where] = F.one_hot(torch.tensor(6), 7).float()
    return x, symbols[torch.arange(n), where + 1]


cell, readout = GatedCell(7, 48), nn.Linear(48, 6)
optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=1e-2)
avg = None
for step in range(500):
    x, y = get_batch()
    loss = F.cross_entropy(readout(cell(x)), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(cell.parameters(), 1.0)
    optimizer.step()
    avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
    if step % 50 == 0 or step == 499:
        print(f"step {step} loss {avg:.4f}")
