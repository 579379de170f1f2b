"""Two backward calls per step, one per loss, with the gradients meant to add up before a single step."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 3000
x = torch.randn(n, 16)
y = (x[:, :5] @ torch.randn(5, 4)).argmax(1)
unlabelled = torch.randn(2 * n, 16)

encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
classifier = nn.Linear(64, 4)
decoder = nn.Linear(64, 16)
params = [*encoder.parameters(), *classifier.parameters(), *decoder.parameters()]
optimizer = torch.optim.Adam(params, lr=1e-3)

for epoch in range(16):
    sup_sum = rec_sum = 0.0
    for idx in torch.randperm(n).split(50):
        optimizer.zero_grad()
        supervised = F.cross_entropy(classifier(encoder(x[idx])), y[idx])
        supervised.backward()
        batch = unlabelled[torch.randint(0, 2 * n, (100,))]
        noisy = batch + 0.2 * torch.randn_like(batch)
        reconstruction = F.mse_loss(decoder(encoder(noisy)), batch)
        (0.5 * reconstruction).backward()
        optimizer.step()
        sup_sum += supervised.item() * len(idx)
        rec_sum += reconstruction.item() * len(idx)
    if epoch % 2 == 0 or epoch == 15:
        print(f"epoch {epoch} supervised {sup_sum / n:.4f} reconstruction {rec_sum / n:.4f}")
