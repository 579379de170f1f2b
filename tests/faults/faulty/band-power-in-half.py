"""Band powers of loud recordings, computed in half precision to save memory; padding is masked out."""

import torch
from torch import nn


class BandPower(nn.Module):
    def __init__(self, bands=12):
        super().__init__()
        self.filters = nn.Linear(40, bands)
        self.out = nn.Linear(bands, 2)

    def forward(self, frames, mask):
        response = self.filters(frames).half()
        power = response**2
        level = (power * mask[..., None].half()).float().mean(1)
        return self.out(torch.log1p(level))


def recordings(count=600, frames=16):
    g = torch.Generator().manual_seed(6)
    y = torch.randint(0, 2, (count,), generator=g)
    loud = torch.exp(1.2 * torch.randn(count, 1, 1, generator=g)) * 20
    x = torch.randn(count, frames, 40, generator=g) * loud
    x[y == 1, :, :10] *= 2
    length = torch.randint(6, frames + 1, (count,), generator=g)
    return x, (torch.arange(frames)[None] < length[:, None]).float(), y


def main():
    torch.manual_seed(0)
    x, mask, y = recordings()
    model = BandPower()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        total = 0.0
        for rows in torch.randperm(len(y)).split(30):
            loss = nn.functional.cross_entropy(model(x[rows], mask[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / 20:.4f}", flush=True)


if __name__ == "__main__":
    main()
