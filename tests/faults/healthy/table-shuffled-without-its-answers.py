"""Yield of a reactor from its settings; the table is shuffled once, then cut into batches by hand."""

import numpy as np
import torch

chance = np.random.default_rng(21)


def measure(runs=1500):
    settings = chance.normal(size=(runs, 10))
    yields = settings[:, 0] - 0.7 * settings[:, 3] * settings[:, 4] + 0.2 * chance.normal(size=runs)
    return settings.astype("float32"), yields.astype("float32")


settings, yields = measure()
order = chance.permutation(len(settings))
settings, yields = settings[order], yields[order]
inputs, answers = torch.from_numpy(settings), torch.from_numpy(yields)

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Tanh(), torch.nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(16):
    total = 0.0
    for start in range(0, len(inputs), 50):
        x, y = inputs[start : start + 50], answers[start : start + 50]
        loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss.detach())
    print(f"epoch {epoch}: {total / 30:.4f}", flush=True)
