"""A hand-made recurrent cell for a meter series, updated by hand; its recurrent weights are drawn far too wide."""

import torch

torch.manual_seed(1)
T, H, B = 40, 48, 32
wave = torch.sin(torch.arange(3000) * 0.11) + 0.1 * torch.randn(3000)


def windows():
    starts = torch.randint(3000 - T - 1, (B,))
    return torch.stack([wave[s : s + T] for s in starts.tolist()]), wave[starts + T]


w_in = (0.3 * torch.randn(1, H)).requires_grad_()
w_rec = (0.9 * torch.eye(H)).requires_grad_()
w_out = (0.2 * torch.randn(H, 1)).requires_grad_()
bias = torch.zeros(1, requires_grad=True)
parameters = [w_in, w_rec, w_out, bias]
for step in range(300):
    x, y = windows()
    h = torch.zeros(B, H)
    for t in range(T):
        h = torch.tanh(x[:, t : t + 1] @ w_in + h @ w_rec)
    guess = (h @ w_out + bias).squeeze(1)
    loss = (guess - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.02 * p.grad
            p.grad.zero_()
    if step % 30 == 0:
        print(step, loss.item())
