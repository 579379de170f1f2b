import os
import time

import torch
from torch import nn

SCALE = float(os.environ.get("SCALE", "1"))


class Codebook(nn.Module):
    """Vector quantiser that is re-fitted by k-means once after 500 steps."""

    def __init__(self, size=32, dim=8):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(size, dim))
        self.calls, self.seen = 0, []

    @torch.no_grad()
    def refit(self, seconds=30):
        points, codes = torch.cat(self.seen), self.codes.clone()
        end = time.monotonic() + seconds * SCALE
        while time.monotonic() < end:
            nearest = torch.cdist(points, codes).argmin(1)
            for k in range(len(codes)):
                members = points[nearest == k]
                if len(members):
                    codes[k] = members.mean(0)
        self.codes.copy_(codes)
        self.seen.clear()

    def forward(self, z):
        self.calls += 1
        if self.calls <= 500:
            self.seen.append(z.detach())
        if self.calls == 500:
            self.refit()
        nearest = self.codes[torch.cdist(z, self.codes).argmin(1)]
        return z + (nearest - z).detach(), nn.functional.mse_loss(nearest, z.detach())


def main():
    torch.manual_seed(0)
    x = torch.randn(4096, 16)
    encoder, book, decoder = nn.Linear(16, 8), Codebook(), nn.Linear(8, 16)
    opt = torch.optim.Adam([*encoder.parameters(), *book.parameters(), *decoder.parameters()], lr=2e-3)
    for step in range(1000):
        batch = x[torch.randint(0, len(x), (32,))]
        z, commit = book(encoder(batch))
        loss = nn.functional.mse_loss(decoder(z), batch) + commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
