import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def backtrack(model, params, loss_fn, loss, step, shrink=0.5):
    """Shrink the step until the loss goes down."""
    start = [p.clone() for p in params]
    grads = [p.grad.clone() for p in params]
    for _ in range(30):
        for p, s, g in zip(params, start, grads):
            p.copy_(s - step * g)
        if loss_fn() < loss:
            return step
        step *= shrink
    return 0.0


def main():
    torch.manual_seed(0)
    x = torch.randn(512, 6)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0], [3.0], [1.5]])
    loader = DataLoader(TensorDataset(x, y), batch_size=64)
    model = nn.Linear(6, 1)
    params = list(model.parameters())
    for epoch in range(60):
        for xb, yb in loader:
            model.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            step = backtrack(model, params, lambda: nn.functional.mse_loss(model(xb), yb), loss.detach(), step=1.0)
        print(f"epoch {epoch} mse {loss.item():.3e} step {step:.3g}", flush=True)


if __name__ == "__main__":
    main()
