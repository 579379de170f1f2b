"""Two tasks on one trunk: the main head trains the trunk, the auxiliary probe reads detached features."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.classify = nn.Linear(64, 4)
        self.probe = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.trunk(x)
        return self.classify(h), self.probe(h.detach()).squeeze(1)


n = 4000
x = torch.randn(n, 20)
label = (x[:, :8] @ torch.randn(8, 4)).argmax(1)
value = x[:, 0] - 0.5 * x[:, 3] + 0.1 * torch.randn(n)

model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(16):
    cls_sum = reg_sum = 0.0
    for idx in torch.randperm(n).split(64):
        logits, pred = model(x[idx])
        cls_loss = F.cross_entropy(logits, label[idx])
        reg_loss = F.mse_loss(pred, value[idx])
        loss = cls_loss + reg_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cls_sum += cls_loss.item() * len(idx)
        reg_sum += reg_loss.item() * len(idx)
    print(f"epoch {epoch} class {cls_sum / n:.4f} probe {reg_sum / n:.4f}")
