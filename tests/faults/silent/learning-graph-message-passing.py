"""Semi-supervised node classification with a two-layer graph convolution: only 10 % of the nodes are labelled."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

N, K = 500, 4
y = torch.randint(0, K, (N,))
same = y.unsqueeze(0) == y.unsqueeze(1)
prob = torch.where(same, torch.tensor(0.05), torch.tensor(0.005))
upper = (torch.rand(N, N) < prob).triu(1).float()
adj = upper + upper.T + torch.eye(N)
deg = adj.sum(1)
adj = adj / (deg.unsqueeze(0) * deg.unsqueeze(1)).sqrt()
features = torch.randn(K, 32)[y] + 3.0 * torch.randn(N, 32)
labelled = torch.rand(N) < 0.1


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(32, 32)
        self.w2 = nn.Linear(32, K)

    def forward(self, x):
        h = F.relu(adj @ self.w1(x))
        h = F.dropout(h, 0.4, self.training)
        return adj @ self.w2(h)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)

for epoch in range(600):
    model.train()
    loss = F.cross_entropy(model(features)[labelled], y[labelled])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 60 == 0 or epoch == 599:
        model.eval()
        with torch.no_grad():
            acc = (model(features).argmax(1) == y)[~labelled].float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} unlabelled acc {acc:.3f}")
