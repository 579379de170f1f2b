"""A denoiser for small patterns: the noise that was added is what it has to find."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
LEVELS = 40
kept = torch.cumprod(1 - torch.linspace(1e-3, 0.15, LEVELS), 0)


def blurred(images, level, noise=None):
    noise = torch.randn_like(images) if noise is None else noise
    share = kept[level].view(-1, 1, 1, 1)
    return share.sqrt() * images + (1 - share).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Embedding(LEVELS, 24)
        self.first, self.last = nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 1, 3, padding=1)
        self.middle = nn.Conv2d(24, 24, 3, padding=1)

    def forward(self, images, level):
        hidden = torch.relu(self.first(images) + self.level(level)[:, :, None, None])
        return self.last(torch.relu(self.middle(hidden)))


phase = 6.28 * torch.rand(1024, 1, 1, 1)
images = torch.sin(torch.arange(8.0).view(1, 1, 1, 8) + torch.arange(8.0).view(1, 1, 8, 1) + phase)
net = Denoiser()
adam = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(25):
    total = 0.0
    for (batch,) in DataLoader(TensorDataset(images), batch_size=64, shuffle=True):
        level = torch.randint(0, LEVELS, (len(batch),))
        noise = torch.randn_like(batch)
        guess = net(blurred(batch, level, noise), level)
        loss = nn.functional.mse_loss(guess, noise)
        adam.zero_grad()
        loss.backward()
        adam.step()
        total += loss.item()
    print(epoch, total / 16)
