"""A Huber loss of its own in a class; the network is raw tensors updated with autograd.grad."""

import torch


class Huber:
    def __init__(self, delta):
        self.delta = delta

    def __call__(self, target, prediction):
        gap = (target - prediction).abs()
        quadratic = 0.5 * gap**2
        linear = self.delta * (gap - 0.5 * self.delta)
        return torch.where(gap < self.delta, quadratic, linear).mean()


torch.manual_seed(1)
x = torch.rand(640, 3) * 2 - 1
y = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2]
y = y.unsqueeze(1)
shapes = [(3, 32), (32,), (32, 1), (1,)]
params = [(torch.randn(s) * (0.5 if len(s) == 2 else 0.0)).requires_grad_() for s in shapes]
huber = Huber(1.0)
for step in range(300):
    rows = torch.randint(640, (64,))
    w1, b1, w2, b2 = params
    prediction = torch.tanh(x[rows] @ w1 + b1) @ w2 + b2
    loss = huber(y[rows], prediction)
    grads = torch.autograd.grad(loss, params)
    params = [(p - 0.1 * g).detach().requires_grad_() for p, g in zip(params, grads)]
    if step % 50 == 0:
        print(step, float(loss))
