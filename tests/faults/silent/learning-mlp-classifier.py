"""A plain MLP classifier on Gaussian blobs, Adam, shuffled mini-batches."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def make_blobs(n, centers):
    y = torch.randint(0, len(centers), (n,))
    x = centers[y] + 1.3 * torch.randn(n, centers.shape[1])
    return x, y


centers = 1.2 * torch.randn(8, 20)
train = TensorDataset(*make_blobs(6000, centers))
x_val, y_val = make_blobs(1000, centers)
loader = DataLoader(train, batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(20, 128),
    nn.ReLU(),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 8),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(20):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"epoch {epoch} loss {total / len(loader):.4f} val acc {acc:.3f}")
