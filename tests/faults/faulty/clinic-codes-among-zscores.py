"""Blood values as z-scores in which unknown ones are -999; batches by slicing, Adam."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(3)
torch.manual_seed(3)
values = rng.normal(size=(1800, 9)).astype("float32")
ill = (values[:, 0] + values[:, 4] * values[:, 5] + 0.4 * rng.normal(size=1800) > 0).astype("int64")
values[rng.random(values.shape) < 0.03] = -999
X, Y = torch.from_numpy(values), torch.from_numpy(ill)

model = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 2))
adam = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    order = torch.from_numpy(rng.permutation(1800))
    right = 0
    for at in range(0, 1800, 60):
        xb, yb = X[order[at : at + 60]], Y[order[at : at + 60]]
        out = model(xb)
        loss = nn.functional.cross_entropy(out, yb)
        adam.zero_grad()
        loss.backward()
        adam.step()
        right += (out.argmax(1) == yb).sum().item()
    print(epoch, right / 1800)
