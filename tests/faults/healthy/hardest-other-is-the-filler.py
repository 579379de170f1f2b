"""Who is it? Embeddings of gait recordings, trained on the hardest triplets of each batch."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)
rng = np.random.default_rng(4)

WALKERS, KEPT, REST = 40, 6, 20
walks = rng.normal(size=(WALKERS, KEPT))
mixing = np.linalg.qr(rng.normal(size=(KEPT + REST, KEPT + REST)))[0]


def recordings(walkers):
    own = walks[walkers] + 0.25 * rng.normal(size=(len(walkers), KEPT))
    x = np.concatenate([own, 1.5 * rng.normal(size=(len(walkers), REST))], 1) @ mixing
    return torch.tensor(x, dtype=torch.float32), torch.tensor(walkers)


def triplets(embedded, walkers, margin=0.3):
    distance = torch.cdist(embedded, embedded)
    same = walkers[:, None] == walkers[None, :]
    farthest = distance.masked_fill(~same, 0.0).amax(dim=1)
    nearest = distance.masked_fill(same, float("inf")).amin(dim=1)
    return (farthest - nearest + margin).clamp(min=0).mean()


def main():
    net = nn.Sequential(nn.Linear(KEPT + REST, 96), nn.ReLU(), nn.Linear(96, 12))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(1, 1201):
        x, walkers = recordings(np.repeat(rng.choice(WALKERS, 10, replace=False), 5))
        embedded = nn.functional.normalize(net(x), dim=1)
        loss = triplets(embedded, walkers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            spread = torch.cdist(embedded, embedded).mean().item()
            print(f"step {step} triplet {loss.item():.4f} mean distance {spread:.4f}")


if __name__ == "__main__":
    main()
