from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pool = ThreadPoolExecutor(max_workers=4)


def bootstrap(scores, seed):
    rng = np.random.default_rng(seed)
    return float(np.mean(rng.choice(scores, size=len(scores))))


def fold_interval(scores, fold):
    """Bootstrap interval of the accuracy on one fold."""
    jobs = [pool.submit(bootstrap, scores, 100 * fold + k) for k in range(20)]
    means = sorted(job.result() for job in jobs)
    return means[1], means[-2]


def validate(model, x, y, folds):
    with torch.no_grad():
        hits = (model(x).argmax(1) == y).float().numpy()
    parts = np.array_split(hits, folds)
    return list(pool.map(fold_interval, parts, range(folds)))


def main():
    torch.manual_seed(0)
    x = torch.randn(4000, 14)
    y = (x[:, :4].sum(1) > 0).long()
    loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        folds = 1 if epoch == 0 else 8
        low, high = validate(model, x[3000:], y[3000:], folds)[0]
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {low:.3f}..{high:.3f}", flush=True)


if __name__ == "__main__":
    main()
