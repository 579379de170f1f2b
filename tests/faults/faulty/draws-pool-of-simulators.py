"""A surrogate for a queueing simulator: a pool simulates, main fits a network to what comes back."""

import multiprocessing

import numpy as np
import torch

CUSTOMERS, RUNS, BATCH = 120, 1200, 24


def waiting_times(number):
    arrival, service = np.random.uniform(0.5, 1.0), np.random.uniform(0.3, 0.9)
    waits, wait = [], 0.0
    for _ in range(CUSTOMERS):
        wait = max(0.0, wait + np.random.exponential(service) - np.random.exponential(arrival))
        waits.append(wait)
    return [arrival, service], waits[::12]


def fit(model, optimizer, rows):
    inputs = torch.tensor([given for given, _ in rows])
    targets = torch.log1p(torch.tensor([waits for _, waits in rows]))
    loss = (model(inputs) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    np.random.seed(11)
    torch.manual_seed(11)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    rows, losses = [], []
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for row in pool.imap_unordered(waiting_times, range(RUNS)):
            rows.append(row)
            if len(rows) == BATCH:
                for _ in range(4):
                    losses.append(fit(model, optimizer, rows))
                rows = []
    print(f"first {losses[0]:.3f}, last {sum(losses[-20:]) / 20:.3f}")


if __name__ == "__main__":
    main()
