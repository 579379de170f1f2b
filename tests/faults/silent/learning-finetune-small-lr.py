"""Fine-tuning of a pretrained net at lr 1e-5: the loss moves slowly and a little, as it should."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def run(model, x, y, lr, epochs, tag):
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % 2 == 0 or epoch == epochs - 1:
            print(f"{tag} epoch {epoch} loss {total / len(x):.4f}")


rule = torch.randn(32, 10)
x_pre = torch.randn(6000, 32)
y_pre = (x_pre @ rule).argmax(1)
model = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
run(model, x_pre, y_pre, lr=1e-3, epochs=5, tag="pretrain")

# the downstream task is a near relative of the first
x_ft = torch.randn(4000, 32)
y_ft = (x_ft @ (rule + 0.4 * torch.randn(32, 10))).argmax(1)
run(model, x_ft, y_ft, lr=1e-5, epochs=14, tag="finetune")
