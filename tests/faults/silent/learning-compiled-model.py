"""torch.compile with the aot_eager backend around a small net."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 96)
        self.fc2 = nn.Linear(96, 96)
        self.norm = nn.LayerNorm(96)
        self.out = nn.Linear(96, 4)

    def forward(self, x):
        h = F.silu(self.fc1(x))
        h = h + F.silu(self.fc2(self.norm(h)))
        return self.out(h)


x = torch.randn(3200, 16)
y = (torch.relu(x @ torch.randn(16, 12)) @ torch.randn(12, 4)).argmax(1)

model = Net()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(12):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(compiled(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.4f}")
