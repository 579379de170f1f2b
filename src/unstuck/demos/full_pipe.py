"""A training that waits for its sorting program, which waits for somebody to read what it prints."""

import subprocess
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def worst_rows(model, inputs, labels, count=5):
    """The rows that the model is least sure of, sorted by the system's own sort."""
    with torch.no_grad():
        sure = model(inputs).softmax(1).gather(1, labels[:, None]).squeeze(1).tolist()
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        for row, (share, label) in enumerate(zip(sure, labels.tolist())):
            table.write(f"{share:.6f},row {row:05d},label {label}\n")
        table.flush()
        with subprocess.Popen(["sort", "-n", table.name], stdout=subprocess.PIPE, text=True) as program:
            if program.wait() != 0:
                raise RuntimeError("sorting failed")
            return program.stdout.readlines()[:count]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = torch.randn(12_000, 32)
    labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(inputs[:8_000], labels[:8_000]), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for step, (row, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(row), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}", flush=True)
        rows = slice(8_000, 8_000 + 1_000 * (epoch + 1))  # a look at more rows each time
        worst = worst_rows(model, inputs[rows], labels[rows])
        print(f"epoch {epoch}  worst: {worst[0].strip()}", flush=True)


if __name__ == "__main__":
    main()
