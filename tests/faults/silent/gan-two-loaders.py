import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Real(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        angle = 6.283 * torch.rand(1, generator=g)
        return torch.cat([angle.cos(), angle.sin()])


class Noise(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.randn(8, generator=torch.Generator().manual_seed(10_000 + i))


def main():
    torch.manual_seed(0)
    real = DataLoader(Real(), batch_size=20, shuffle=True, num_workers=2)
    noise = DataLoader(Noise(), batch_size=20, shuffle=True, num_workers=2, persistent_workers=True)
    gen = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    disc = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.999))
    bce = nn.functional.binary_cross_entropy_with_logits
    for epoch in range(5):
        latents = itertools.chain.from_iterable(noise for _ in itertools.count())
        for x, z in zip(real, latents):
            fake = gen(z)
            score_real, score_fake = disc(x), disc(fake.detach())
            d_loss = bce(score_real, torch.ones_like(score_real)) + bce(score_fake, torch.zeros_like(score_fake))
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
            score = disc(fake)
            g_loss = bce(score, torch.ones_like(score))
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        print(f"epoch {epoch} d {d_loss.item():.3f} g {g_loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
