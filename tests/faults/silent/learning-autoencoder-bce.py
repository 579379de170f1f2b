"""A convolutional autoencoder with a sigmoid output and BCE on pixels in [0, 1] (floor above zero)."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def make_images(n, side=16):
    grid = torch.linspace(-1, 1, side)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle = 3.14 * torch.rand(n, 1, 1)
    freq = 2 + 4 * torch.rand(n, 1, 1)
    stripes = torch.sin(freq * (xx * angle.cos() + yy * angle.sin()))
    return (0.5 + 0.5 * stripes).unsqueeze(1)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 16, 16),
        )
        self.decoder = nn.Sequential(
            nn.Linear(16, 16 * 16),
            nn.ReLU(),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 2, stride=2),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 2, stride=2),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


images = make_images(1500)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCELoss()

for epoch in range(16):
    total = 0.0
    for idx in torch.randperm(len(images)).split(32):
        x = images[idx]
        loss = criterion(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} bce {total / len(images):.4f}")
