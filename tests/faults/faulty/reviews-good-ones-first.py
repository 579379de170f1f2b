"""Reviews come sorted, the good ones first; the net is updated by hand."""

import torch

torch.manual_seed(2)
N, WORDS, BATCH = 1600, 30, 40
weights_of_words = torch.randn(WORDS)
x = torch.randn(N, WORDS)
y = (x @ weights_of_words + 0.5 * torch.randn(N) > 0).float()
order = y.argsort(descending=True)  # the export lists good reviews first
x, y = x[order], y[order]

w1 = (torch.randn(WORDS, 16) / WORDS**0.5).requires_grad_()
b1 = torch.zeros(16, requires_grad=True)
w2 = (torch.randn(16) / 4).requires_grad_()
b2 = torch.zeros((), requires_grad=True)
params = [w1, b1, w2, b2]
lr = 0.3


def forward(inputs):
    return (inputs @ w1 + b1).relu() @ w2 + b2


for epoch in range(8):
    running = 0.0
    for k in range(N // BATCH):
        xb, yb = x[k * BATCH : (k + 1) * BATCH], y[k * BATCH : (k + 1) * BATCH]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(forward(xb), yb)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= lr * p.grad
                p.grad = None
        running += loss.item()
    with torch.no_grad():
        accuracy = ((forward(x) > 0) == (y > 0)).float().mean()
    print(f"{epoch} {running / (N // BATCH):.4f} {accuracy:.3f}")
