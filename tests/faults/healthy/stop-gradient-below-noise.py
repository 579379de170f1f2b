"""Ridge regression until the norm of the gradient has been small for a while."""

import torch


def gradient_norm(parameters):
    return torch.cat([p.grad.flatten() for p in parameters]).norm().item()


def fit(x, y, tolerance=2e-3, in_a_row=8):
    weight = torch.zeros(x.shape[1], 1, requires_grad=True)
    bias = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=0.03, momentum=0.9)
    small = steps = 0
    while small < in_a_row:
        rows = torch.arange(len(x))
        loss = (x[rows] @ weight + bias - y[rows]).pow(2).mean() + 1e-3 * weight.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 5:
            continue
        norm = gradient_norm([weight, bias])
        if norm < tolerance:
            small += 1
        else:
            small = 0
        if steps % 2000 == 0:
            print(f"step {steps}: loss {loss.item():.4f}, gradient {norm:.4f}", flush=True)
    return weight, steps


def main():
    torch.manual_seed(8)
    x = torch.randn(4000, 20)
    truth = torch.randn(20, 1)
    y = x @ truth + 0.7 * torch.randn(4000, 1)
    weight, steps = fit(x, y)
    print(f"{steps} steps, error of the weights {(weight - truth).norm().item():.4f}")


if __name__ == "__main__":
    main()
