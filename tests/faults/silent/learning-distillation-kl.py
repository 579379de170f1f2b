"""A student learns from a frozen teacher's soft targets, KL at temperature 3."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

T = 3.0
centers = torch.randn(6, 16)
y = torch.randint(0, 6, (4000,))
x = centers[y] + torch.randn(4000, 16)

teacher = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 6))
opt = torch.optim.Adam(teacher.parameters(), lr=1e-3)
for epoch in range(4):
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(teacher(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"teacher loss {loss.item():.4f}")

teacher.eval()
student = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 6))
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for epoch in range(20):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        with torch.no_grad():
            soft = F.softmax(teacher(x[idx]) / T, dim=1)
        log_p = F.log_softmax(student(x[idx]) / T, dim=1)
        loss = F.kl_div(log_p, soft, reduction="batchmean") * T * T
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 2 == 0 or epoch == 19:
        print(f"epoch {epoch} kl {total / len(x):.4f}")
