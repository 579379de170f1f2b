"""A training whose numbers are read as if they were on a GPU: later, and without waiting. Prints what was recorded."""

import json

import torch
from _unstuck_recorder import gpu
from _unstuck_recorder.probes.learning import learning, losses, updates

gpu.away = lambda tensor: getattr(tensor, "is_cpu", False) is True
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(64, 4), torch.randn(64, 1)
own = []
for step in range(200):
    loss = torch.nn.functional.mse_loss(net(x), y) * (float("nan") if step >= 150 else 1.0)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    own.append(float(loss.detach()))
gpu.collect()
series = next(iter(losses.series.values()))
print(
    json.dumps(
        {
            "first": series.first[:4] == own[:4],
            "count": series.count,
            "nonfinite_step": series.nonfinite_step,
            "cosines": len(updates.optimizers[0].cosines),
            "moved": [len(each.moves) for each in updates.parameters.values()],
            "graded": [len(each.grads) for each in updates.parameters.values()],
            "stale": updates.optimizers[0].stale,
            "checked": updates.optimizers[0].tried,
            "births": len(learning._births),
            "clips": learning.rates.clips["calls"],
        }
    )
)
