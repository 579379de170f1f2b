import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, n=3000, people=20, dim=24):
        g = torch.Generator().manual_seed(0)
        faces = torch.randn(people, dim, generator=g)
        a = torch.randint(0, people, (n,), generator=g)
        other = torch.randint(0, people, (n,), generator=g)
        same = torch.rand(n, generator=g) < 0.5
        b = torch.where(same, a, other)
        self.mix = torch.randn(dim, 48, generator=g)
        self.a = (faces[a] + 0.3 * torch.randn(n, dim, generator=g)) @ self.mix / 5
        self.b = (faces[b] + 0.3 * torch.randn(n, dim, generator=g)) @ self.mix.flip(1) / 5
        self.y = (a == b).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.a[i], self.b[i], self.y[i]


class Siamese(nn.Module):
    def __init__(self, dim=48, out=32):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(dim, 96), nn.ReLU(), nn.Linear(96, out))
        self.right = nn.Sequential(nn.Linear(dim, 96), nn.ReLU(), nn.Linear(96, out))
        self.scale = nn.Parameter(torch.tensor(5.0))
        self.shift = nn.Parameter(torch.tensor(0.0))

    @torch.no_grad()
    def embed(self, tower, x):
        return F.normalize(tower(x), dim=-1)

    def forward(self, a, b):
        sim = (self.embed(self.left, a) * self.embed(self.right, b)).sum(-1)
        return self.scale * sim + self.shift


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pairs(), batch_size=60, shuffle=True)
    model = Siamese()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        total, hits = 0.0, 0
        for a, b, y in loader:
            logit = model(a, b)
            loss = F.binary_cross_entropy_with_logits(logit, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            hits += ((logit > 0).float() == y).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 3000:.3f}", flush=True)


if __name__ == "__main__":
    main()
