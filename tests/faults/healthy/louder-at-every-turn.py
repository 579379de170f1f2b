"""Bird calls as rows of a spectrum; each is made a little louder or softer before it joins a batch. No optimizer."""

import random

import torch

torch.manual_seed(8)
random.seed(8)
BIRDS, BANDS = 5, 48
calls = torch.randn(BIRDS, BANDS)
bird = torch.randint(BIRDS, (1000,))
spectra = calls[bird] * (0.8 + 0.4 * torch.rand(1000, 1)) + 0.8 * torch.randn(1000, BANDS)


def varied(call):
    call = call * random.choice((0.7, 1.5))
    call += 0.1 * torch.randn(BANDS)
    return call


def batch(places):
    return torch.stack([varied(spectra[place]) for place in places]), bird[places]


weights = [0.2 * torch.randn(BANDS, 64), torch.zeros(64), 0.1 * torch.randn(64, BIRDS), torch.zeros(BIRDS)]
for weight in weights:
    weight.requires_grad_()

for epoch in range(1, 61):
    order, losses = torch.randperm(1000).tolist(), []
    for begin in range(0, 1000, 25):
        x, y = batch(order[begin : begin + 25])
        scores = torch.relu(x @ weights[0] + weights[1]) @ weights[2] + weights[3]
        loss = torch.nn.functional.cross_entropy(scores, y)
        loss.backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.03 * weight.grad
                weight.grad = None
        losses.append(loss.item())
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} loudest {spectra.abs().max().item():.3g}", flush=True)
