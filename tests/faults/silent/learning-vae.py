"""A VAE on small synthetic images: BCE reconstruction plus KL, summed over pixels."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

SIDE = 12


def make_images(n):
    grid = torch.arange(SIDE).float()
    cx, cy = 2 + 8 * torch.rand(n, 1, 1), 2 + 8 * torch.rand(n, 1, 1)
    r = 1.5 + 1.5 * torch.rand(n, 1, 1)
    d2 = (grid.view(1, -1, 1) - cx) ** 2 + (grid.view(1, 1, -1) - cy) ** 2
    return torch.sigmoid(3 * (r**2 - d2)).flatten(1)


class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE**2, 128), nn.ReLU())
        self.mu = nn.Linear(128, latent)
        self.logvar = nn.Linear(128, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, SIDE**2))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


data = make_images(3000)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)

for epoch in range(22):
    total = 0.0
    for idx in torch.randperm(len(data)).split(64):
        x = data[idx]
        logits, mu, logvar = vae(x)
        recon = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        loss = recon + kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        print(f"epoch {epoch} -elbo {total / len(data):.3f} (recon {recon.item():.2f} kl {kl.item():.2f})")
