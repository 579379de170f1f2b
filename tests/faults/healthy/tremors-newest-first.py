"""Three kinds of tremor from the traces of a seismometer with two axes; the log lists them as they came."""

import numpy as np
import torch
from torch import nn

TRACES, LENGTH = 3000, 96


def archive(chance):
    kind = chance.integers(0, 3, TRACES)
    time = np.arange(LENGTH)
    period = np.array([7.0, 12.0, 21.0])[kind][:, None]
    phase = chance.uniform(0, 2 * np.pi, (TRACES, 1))
    both = [np.sin(2 * np.pi * time / period + phase + turn) for turn in (0.0, 1.0)]
    traces = np.stack(both, 1) + chance.normal(0, 0.7, (TRACES, 2, LENGTH))
    log = []
    for each in kind:
        log.append(("slip", "quarry", "traffic")[each])
    return traces.astype("float32"), log


def main():
    torch.manual_seed(0)
    traces, log = archive(np.random.default_rng(5))
    names = sorted(set(log))
    kinds = np.array([names.index(name) for name in log])
    model = nn.Sequential(
        nn.Conv1d(2, 12, 9), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(12, 16, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
        nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    chance = np.random.default_rng(1)
    for step in range(600):
        few = chance.integers(0, TRACES, 32)
        x, y = torch.from_numpy(traces[few]), torch.from_numpy(kinds[few])
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
