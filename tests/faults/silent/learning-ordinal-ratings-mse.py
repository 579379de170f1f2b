"""Star ratings 1-5 predicted as a number with MSE, on purpose: the order of the stars matters."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

USERS, ITEMS, N = 300, 200, 20000
taste, quality = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
users = torch.randint(0, USERS, (N,))
items = torch.randint(0, ITEMS, (N,))
raw = 3 + 0.8 * (taste[users] * quality[items]).sum(1) + 0.3 * torch.randn(N)
ratings = raw.round().clamp(1, 5)  # integers, stored as floats


class Recommender(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.item = nn.Embedding(ITEMS, dim)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, u, i):
        a, b = self.user(u), self.item(i)
        return 3 + self.mlp(torch.cat([a, b, a * b], dim=1)).squeeze(1)


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
mse = nn.MSELoss()

for epoch in range(20):
    total = 0.0
    for idx in torch.randperm(N).split(256):
        loss = mse(model(users[idx], items[idx]), ratings[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} mse {total / N:.4f} rmse {(total / N) ** 0.5:.3f} stars")
