"""An optimizer class of its own whose rate and decay are handed over in the wrong order."""

import torch

torch.manual_seed(0)


class Momentum:
    def __init__(self, params, decay, lr, beta=0.9):
        self.params, self.decay, self.lr, self.beta = params, decay, lr, beta
        self.velocity = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity):
            v.mul_(self.beta).add_(p.grad + self.decay * p)
            p.sub_(self.lr * v)
            p.grad = None


x = torch.randn(1200, 10)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
w1 = (torch.randn(10, 64) * 0.3).requires_grad_()
b1 = torch.zeros(64, requires_grad=True)
w2 = (torch.randn(64, 2) * 0.15).requires_grad_()
b2 = torch.zeros(2, requires_grad=True)
optimizer = Momentum([w1, b1, w2, b2], 0.05, 1e-6)
for epoch in range(15):
    total = 0.0
    for rows in torch.randperm(1200).split(40):
        logits = torch.relu(x[rows] @ w1 + b1) @ w2 + b2
        loss = torch.nn.functional.cross_entropy(logits, y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 30)
