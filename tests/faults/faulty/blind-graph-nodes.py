import torch
from torch import nn
import torch.nn.functional as F


def community_graph(n=300, k=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, k, (n,), generator=g)
    p = torch.where(y[:, None] == y[None, :], 0.10, 0.01)
    a = (torch.rand(n, n, generator=g) < p).float().triu(1)
    a = a + a.t() + torch.eye(n)
    d = a.sum(1).rsqrt()
    x = F.one_hot(y, k).float() @ torch.randn(k, 16, generator=g) + 1.5 * torch.randn(n, 16, generator=g)
    return d[:, None] * a * d[None, :], x, y


class GraphConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fin, fout))
        self.bias = nn.Parameter(torch.zeros(fout))
        nn.init.constant_(self.weight, 1.0 / fin)

    def forward(self, adj, x):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, fin, hidden, classes):
        super().__init__()
        self.g1 = GraphConv(fin, hidden)
        self.g2 = GraphConv(hidden, classes)

    def forward(self, adj, x):
        h = F.relu(self.g1(adj, x))
        return self.g2(adj, h)


def main():
    torch.manual_seed(0)
    adj, x, y = community_graph()
    perm = torch.randperm(len(y))
    train, test = perm[:200], perm[200:]
    model = GCN(16, 32, 4)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(400):
        model.train()
        opt.zero_grad()
        logits = model(adj, x)
        loss = F.cross_entropy(logits[train], y[train])
        loss.backward()
        opt.step()
        if epoch % 40 == 0:
            acc = (logits[test].argmax(1) == y[test]).float().mean().item()
            print(f"epoch {epoch:3d} loss {loss.item():.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
