import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SkyPatches(Dataset):
    """Predict cloud cover (share of sky) from a grey patch; brighter means more cloud."""

    def __init__(self, n=2000, size=12):
        g = torch.Generator().manual_seed(0)
        self.cover = torch.rand(n, generator=g)
        base = 0.2 + 0.6 * self.cover
        self.patch = base[:, None, None] + 0.15 * torch.randn(n, size, size, generator=g)

    def __len__(self):
        return len(self.cover)

    def __getitem__(self, i):
        p = self.patch[i]
        p = (p - p.mean()) / p.std()
        return p.unsqueeze(0), self.cover[i]


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3))).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(SkyPatches(), batch_size=40, shuffle=True)
    model = CoverNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(8):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.5f}", flush=True)


if __name__ == "__main__":
    main()
