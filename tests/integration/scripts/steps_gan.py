"""Two models that play against each other, each with its optimizer, no DataLoader; a round of both is a step."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(64, 1), torch.zeros(64, 1)
rounds = 0
while rounds < 150:
    real = torch.randn(64, 2) * 0.3 + torch.tensor([1.0, -1.0])
    fake = generator(torch.randn(64, 4))
    d_optimizer.zero_grad()
    d_real = criterion(discriminator(real), real_label)
    d_real.backward()
    d_fake = criterion(discriminator(fake.detach()), fake_label)
    d_fake.backward()
    d_optimizer.step()
    g_optimizer.zero_grad()
    g_loss = criterion(discriminator(fake), real_label)
    g_loss.backward()
    g_optimizer.step()
    rounds += 1
print("updates", rounds)
