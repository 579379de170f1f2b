"""Updates written by hand, as in a lesson: `p -= lr * p.grad`."""

import torch

torch.manual_seed(0)
x = torch.linspace(-3, 3, 256).unsqueeze(1)
y = torch.sin(x)
w1 = (torch.randn(1, 16) * 0.5).requires_grad_()
b1 = torch.zeros(16, requires_grad=True)
w2 = (torch.randn(16, 1) * 0.5).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
parameters = [w1, b1, w2, b2]
lr = 0.05
updates = 0
for _epoch in range(20):
    for i in range(0, 256, 32):
        xb, yb = x[i : i + 32], y[i : i + 32]
        prediction = torch.tanh(xb @ w1 + b1) @ w2 + b2
        loss = (prediction - yb).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= lr * p.grad
                p.grad = None
        updates += 1
print("updates", updates)
