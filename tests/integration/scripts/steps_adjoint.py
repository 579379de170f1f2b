"""A layer that solves a differential equation: its backward pass integrates backwards, a gradient for every part."""

import torch
from torch import nn

PARTS = 100


class Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return self.net(state)


class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field: Field, state: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        ctx.field, ctx.weights = field, weights
        with torch.no_grad():
            for _ in range(PARTS):
                state = state + field(state) / PARTS
        ctx.save_for_backward(state)
        return state

    @staticmethod
    def backward(ctx, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (state,) = ctx.saved_tensors
        totals = [torch.zeros_like(weight) for weight in ctx.weights]
        for _ in range(PARTS):
            with torch.enable_grad():
                here = state.detach().requires_grad_(True)
                moved = ctx.field(here)
            by_state, *by_weights = torch.autograd.grad(moved, (here, *ctx.weights), slope, allow_unused=True)
            state, slope = here.detach() - moved.detach() / PARTS, slope + by_state / PARTS
            totals = [total + part / PARTS for total, part in zip(totals, by_weights, strict=True)]
        return None, slope, *totals


def main() -> None:
    torch.manual_seed(0)
    turned = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
    updates = 0
    for _ in range(30):
        start = torch.randn(32, 2)
        loss = (Solve.apply(field, start, *field.parameters()) - start @ turned).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
    print("updates", updates)


if __name__ == "__main__":
    main()
