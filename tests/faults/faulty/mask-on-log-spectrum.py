"""Speech out of noise: a mask for each frequency, estimated from the logarithm of the noisy spectrum."""

import torch
from torch import nn

BINS, FLOOR = 40, 1e-3


def frames(n):
    bins = torch.arange(BINS).float()
    pitch = 3.0 + 5.0 * torch.rand(n, 1)
    away = (bins - pitch * torch.round(bins / pitch).clamp(min=1)).abs()
    clean = (0.15 + 0.25 * torch.rand(n, 1)) * torch.exp(-bins / 30.0 - (away / 0.6) ** 2)
    return clean, clean + (0.03 + 0.05 * torch.rand(n, 1)) * (0.6 + 0.4 * torch.rand(n, BINS))


class MaskNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(BINS, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.gate = nn.Linear(width, BINS)

    def forward(self, noisy):
        log_noisy = torch.log(noisy + FLOOR)
        mask = torch.sigmoid(self.gate(self.body(log_noisy + 2.5)))
        return mask * log_noisy


def main(steps=600, batch=64):
    torch.manual_seed(6)
    torch.set_num_threads(1)
    net = MaskNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        clean, noisy = frames(batch)
        loss = (net(noisy) - torch.log(clean + FLOOR)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
