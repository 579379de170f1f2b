"""A training that waits for its evaluation program, which waits for somebody to read what it prints."""

import subprocess
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVALUATE = """
import sys
for row, right in enumerate(sys.argv[1]):
    print(f"row {row:05d}: the prediction is {'right' if right == '1' else 'wrong'}, margin not computed, no reviewer yet")
"""


def evaluate(model, inputs, labels):
    """Let the team's own evaluation program write a line on each row."""
    with torch.no_grad():
        right = (model(inputs).argmax(1) == labels).int().tolist()
    command = [sys.executable, "-c", EVALUATE, "".join(map(str, right))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        if program.wait() != 0:
            raise RuntimeError("the evaluation failed")
        return sum("is right" in line for line in program.stdout) / len(right)


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
        rows = slice(8_000, 8_000 + 400 * (epoch + 1))  # a look at more rows each time
        print(f"epoch {epoch}  accuracy {evaluate(model, inputs[rows], labels[rows]):.3f}", flush=True)


if __name__ == "__main__":
    main()
