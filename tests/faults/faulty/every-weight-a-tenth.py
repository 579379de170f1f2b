"""A net of raw tensors whose weights all start at one tenth, updated with autograd.grad."""

import torch

torch.manual_seed(2)
x = torch.randn(900, 6)
y = (x[:, 0] * x[:, 1] > 0).long()


def layer(n_in, n_out):
    return torch.full((n_in, n_out), 0.1, requires_grad=True), torch.full((n_out,), 0.1, requires_grad=True)


layers = [layer(6, 32), layer(32, 32), layer(32, 2)]
flat = [t for pair in layers for t in pair]


def forward(h):
    for i, (w, b) in enumerate(layers):
        h = h @ w + b
        if i < len(layers) - 1:
            h = h.relu()
    return h


for epoch in range(20):
    for rows in torch.randperm(900).split(30):
        loss = torch.nn.functional.cross_entropy(forward(x[rows]), y[rows])
        for p, g in zip(flat, torch.autograd.grad(loss, flat)):
            p.data -= 0.1 * g
    print(epoch, loss.item())
