"""Small VAE on points drawn from rings in 16 dimensions."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class RingData:
    def __init__(self, n, dim=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        basis = torch.randn(2, dim, generator=torch.Generator().manual_seed(99)) / math.sqrt(2)
        angle = torch.rand(n, generator=g) * 2 * math.pi
        radius = 1.0 + torch.randint(0, 2, (n,), generator=g).float()
        pts = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
        self.x = pts @ basis + 0.05 * torch.randn(n, dim, generator=g)

    def batches(self, size):
        order = torch.randperm(len(self.x))
        for chunk in order.split(size):
            yield self.x[chunk]


class VAE(nn.Module):
    def __init__(self, dim=16, hidden=64, latent=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, dim))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        recon = F.mse_loss(self.dec(z), x, reduction="none").sum(-1) / (2 * 0.1 ** 2)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).sum(-1)
        return recon.mean(), kl.mean()


class EarlyStopping:
    def __init__(self, patience=8, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad_epochs = 0
        self.stop = False

    def update(self, value):
        if value < self.best - self.min_delta:
            self.best = value
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        if self.bad_epochs >= self.patience:
            self.stop = True


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train_set, self.val_set = model, train, val
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.stopper = EarlyStopping()
        self.epoch = 0

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for x in self.train_set.batches(64):
            recon, kl = self.model(x)
            loss = recon + kl
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(x)
        return total / len(self.train_set.x)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        recon, kl = self.model(self.val_set.x)
        return (recon + kl).item()

    def fit(self):
        while not self.stopper.stop:
            train_loss = self.run_epoch()
            val_loss = self.validate()
            self.stopper.update(val_loss)
            self.epoch += 1
            if self.epoch % 10 == 0:
                print(f"epoch {self.epoch:3d}  train {train_loss:8.3f}  val {val_loss:8.3f}", flush=True)
        print(f"stopped after {self.epoch} epochs, best {self.stopper.best:.3f}")


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    Trainer(VAE(), RingData(1500, seed=0), RingData(400, seed=7)).fit()
