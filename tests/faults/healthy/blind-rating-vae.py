import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def faces(n=2000, d=40):
    g = torch.Generator().manual_seed(0)
    z = torch.randn(n, 3, generator=g)
    basis = torch.randn(3, d, generator=g)
    x = torch.tanh(z @ basis)
    return TensorDataset(x * 2.0)


class VAE(nn.Module):
    def __init__(self, d=40, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 64), nn.ReLU())
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar, beta=0.02):
    rec = F.mse_loss(recon, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec + beta * kl, rec


def main():
    torch.manual_seed(0)
    loader = DataLoader(faces(), batch_size=40, shuffle=True)
    vae = VAE()
    opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
    for epoch in range(14):
        total = 0.0
        for (x,) in loader:
            recon, mu, logvar = vae(x)
            loss, rec = elbo(recon, x, mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += rec.item()
        print(f"epoch {epoch} reconstruction {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
