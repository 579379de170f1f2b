import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def gestures(n=3000, d=24, kinds=10):
    g = torch.Generator().manual_seed(6)
    proto = 2 * torch.randn(kinds, d, generator=g)
    k = torch.randint(0, kinds, (n,), generator=g)
    return proto[k] + 0.3 * torch.randn(n, d, generator=g)


class VQAutoencoder(nn.Module):
    def __init__(self, d=24, dim=8, codes=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, dim))
        self.codebook = nn.Embedding(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x):
        z = self.encoder(x)
        index = torch.cdist(z, self.codebook.weight).argmin(dim=1)
        q = self.codebook(index)
        extra = torch.zeros(())
        return self.decoder(q), extra


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(gestures()), batch_size=50, shuffle=True)
    model = VQAutoencoder()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(14):
        total = 0.0
        for (x,) in loader:
            recon, extra = model(x)
            rec = F.mse_loss(recon, x)
            loss = rec + extra
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += rec.item()
        print(f"epoch {epoch} reconstruction {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
