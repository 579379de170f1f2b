"""Weight averaging with AveragedModel (EMA) beside the trained net, SWA-style evaluation with update_bn at the end."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(3000, 16)
y = ((x[:, :4] ** 2).sum(1) > 3.5).long() + 2 * (x[:, 5] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4)
)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=3)
SWA_START = 12

for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
        total += loss.item()
    if epoch >= SWA_START:
        swa.update_parameters(model)
        swa_scheduler.step()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")

update_bn(loader, swa)
swa.eval()
with torch.no_grad():
    print(f"swa loss {F.cross_entropy(swa(x), y).item():.4f}")
