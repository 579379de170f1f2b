"""Fine-tuning on statistics that came with a checkpoint, without the counts of batches that newer ones have."""

import argparse
import collections

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


def pictures(n, prototypes):
    y = torch.randint(0, len(prototypes), (n,))
    return prototypes[y] + 1.5 * torch.randn(n, 1, 12, 12), y


def fit(backbone, head, x, y, epochs, still_norms=False):
    model = nn.Sequential(backbone, head)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        for module in backbone.modules():
            if still_norms and isinstance(module, nn.BatchNorm2d):
                module.eval()
        for rows in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


def build():
    return nn.Sequential(block(1, 16), block(16, 32), nn.Flatten())


first = build()
fit(first, nn.Linear(288, 8), *pictures(1000, torch.randn(8, 1, 12, 12)), epochs=2)
checkpoint = {name: value for name, value in first.state_dict().items() if not name.endswith("num_batches_tracked")}
backbone = build()
backbone.load_state_dict(collections.OrderedDict(checkpoint), strict=False)
fit(backbone, nn.Linear(288, 5), *pictures(1000, torch.randn(5, 1, 12, 12)), epochs=8, still_norms=True)
