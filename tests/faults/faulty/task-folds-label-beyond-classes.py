"""Cross-validation of a wine classifier: each fold is trained in a process of a spawned pool."""

import multiprocessing as mp

import torch
from torch import nn

FOLDS, WINES = 4, 600


def cellar():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(WINES, 11, generator=g)
    grade = (x[:, 0] + 0.5 * x[:, 1]).mul(1.5).round().clamp(-2, 2).long() + 3
    return x, grade


def train_fold(fold):
    torch.manual_seed(fold)
    x, grade = cellar()
    held_out = torch.arange(WINES) % FOLDS == fold
    model = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rows = (~held_out).nonzero().squeeze(1)
    for _ in range(8):
        for part in rows[torch.randperm(len(rows))].split(50):
            loss = nn.functional.cross_entropy(model(x[part]), grade[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (model(x[held_out]).argmax(1) == grade[held_out]).float().mean().item()


if __name__ == "__main__":
    with mp.get_context("spawn").Pool(2) as pool:
        for fold, right in enumerate(pool.imap(train_fold, range(FOLDS))):
            print(f"fold {fold}: {right:.3f} right", flush=True)
