"""Second-order optimiser: every step decomposes a large matrix in one call that lasts seconds."""

import time

import torch
from torch import nn


class EigenPrecondition(torch.optim.Optimizer):
    """Whitens the gradient of each matrix with the eigenvectors of its running covariance."""

    def __init__(self, params, lr=1e-2, beta=0.95):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    p.sub_(p.grad, alpha=group["lr"])
                    continue
                state = self.state[p]
                if not state:
                    state["cov"] = torch.eye(p.shape[0])
                state["cov"].lerp_(p.grad @ p.grad.T + 1e-4 * torch.eye(p.shape[0]), 1 - group["beta"])
                values, vectors = torch.linalg.eigh(state["cov"])
                scaled = vectors @ ((vectors.T @ p.grad) / values.clamp_min(1e-6).sqrt()[:, None])
                p.sub_(scaled, alpha=group["lr"] / scaled.norm())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 2200), nn.Tanh(), nn.Linear(2200, 10))
    optimizer = EigenPrecondition(model.parameters())
    x = torch.randn(512, 256)
    y = torch.randint(0, 10, (512,))
    print("READY", flush=True)
    for step in range(100_000):
        start = time.time()
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f} in {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
