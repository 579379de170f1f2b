"""Physics-informed network for a heat equation, fitted with L-BFGS."""

import math

import torch
from torch import nn


class PINN(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def residual(model, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_t, u_x = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t - 0.1 * u_xx


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = PINN()
    optimizer = torch.optim.LBFGS(
        model.parameters(),
        lr=0.8,
        max_iter=200,
        history_size=30,
        line_search_fn="strong_wolfe",
        tolerance_grad=0,
        tolerance_change=0,
    )
    evaluations = 0
    for round_ in range(100_000):
        x, t = torch.rand(2000, 1), torch.rand(2000, 1)
        edge = torch.cat([torch.zeros(100, 1), torch.ones(100, 1)])
        edge_t = torch.rand(200, 1)
        x0 = torch.rand(200, 1)

        def closure(round_=round_, x=x, t=t, edge=edge, edge_t=edge_t, x0=x0):
            nonlocal evaluations
            optimizer.zero_grad()
            loss = residual(model, x, t).square().mean()
            loss = loss + model(edge, edge_t).square().mean()
            loss = loss + (model(x0, torch.zeros_like(x0)) - torch.sin(math.pi * x0)).square().mean()
            loss.backward()
            evaluations += 1
            if evaluations == 3:
                print("READY", flush=True)
            if evaluations % 50 == 0:
                print(f"round {round_} evaluation {evaluations} loss {loss.item():.2e}", flush=True)
            return loss

        optimizer.step(closure)


if __name__ == "__main__":
    main()
