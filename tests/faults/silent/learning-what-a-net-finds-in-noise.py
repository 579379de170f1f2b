"""A check of the method: on answers of pure noise, drawn once, held-out error must stay at their variance."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)

common = torch.randn(4000, 1)
genes = common + 0.5 * torch.randn(4000, 12)
answers = torch.randn(4000, 12)
model = nn.Linear(12, 12)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(3200).split(32):
        loss = nn.functional.mse_loss(model(genes[rows]), answers[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        held_out = nn.functional.mse_loss(model(genes[3200:]), answers[3200:]).item()
    print(epoch, total / 100, held_out)
