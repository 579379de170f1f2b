import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clouds(Dataset):
    """Points on a sphere, a cube surface or a cylinder."""

    def __init__(self, n=1500, points=32):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(0, 3, (n,), generator=g)
        p = torch.randn(n, points, 3, generator=g)
        sphere = p / p.norm(dim=-1, keepdim=True)
        cube = p / p.abs().amax(-1, keepdim=True)
        cyl = torch.cat([p[..., :2] / p[..., :2].norm(dim=-1, keepdim=True), p[..., 2:].clamp(-1, 1)], -1)
        stack = torch.stack([sphere, cube, cyl])
        self.x = stack[self.y, torch.arange(n)] + 0.03 * torch.randn(n, points, 3, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 96), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 3))

    def forward(self, x):
        return self.head(self.point(x).amax(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Clouds(), batch_size=30, shuffle=True)
    model = PointNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    max_norm = 1e-4
    for epoch in range(12):
        total, hits = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            opt.step()
            total += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 1500:.3f}", flush=True)


if __name__ == "__main__":
    main()
