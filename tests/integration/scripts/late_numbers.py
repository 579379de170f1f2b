"""A training whose numbers are read as if they were on a GPU: later, and without waiting. Prints what was recorded."""

import json

import torch
from _unstuck_recorder import dispatch, gpu
from _unstuck_recorder.hooks import backward


def read(reader, root, frame):
    dispatch.emit("gpu_loss", root, frame, root)
    reader.ask()


gpu.away = lambda tensor: getattr(tensor, "is_cpu", False) is True
backward.Reader.read = read
probe = dispatch.probe("learning")
probe.limits = lambda: (float("inf"), float("-inf"))  # no value is read in passing
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
gpu.copies.collect()
learning = probe.measured.record()
print(
    json.dumps(
        {
            "first": learning.losses[0].first[:4] == own[:4],
            "count": learning.losses[0].count,
            "nonfinite_step": learning.losses[0].nonfinite_step,
            "cosines": len(learning.optimizers[0].cosines),
            "moved": [len(each.moves) for each in probe.measured.parameters.known.values()],
            "graded": [len(each.grads) for each in probe.measured.parameters.known.values()],
            "stale": learning.built[0].stale,
            "checked": learning.built[0].checked,
            "births": len(learning.births),
            "clips": learning.clips.calls,
        }
    )
)
