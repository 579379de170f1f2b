"""House prices from a CSV file, read row by row."""

import csv
import random
import tempfile

import torch
from torch import nn

FIELDS = 6


def write_table(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for _ in range(rows):
            x = [random.gauss(0, 1) for _ in range(FIELDS)]
            price = 3 * x[0] - 2 * x[1] + x[2] * x[3] + random.gauss(0, 0.1)
            writer.writerow([f"{value:.5f}" for value in (*x, price)])


def batched(rows, size):
    batch = []
    for row in rows:
        batch.append([float(value) for value in row])
        if len(batch) == size:
            yield torch.tensor(batch)
            batch = []
    if batch:
        yield torch.tensor(batch)


def run_epoch(model, optimizer, rows):
    total, seen = 0.0, 0
    for table in batched(rows, 32):
        x, y = table[:, :FIELDS], table[:, FIELDS:]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        seen += len(x)
    return total / seen


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FIELDS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/houses.csv"
        write_table(path, 6000)
        with open(path, newline="") as file:
            rows = csv.reader(file)
            for epoch in range(10):
                error = run_epoch(model, optimizer, rows)
                print(f"epoch {epoch} error {error:.4f}", flush=True)
