"""Two ranks train; then rank 0 evaluates for a long time while the other waits in a barrier."""

import datetime
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EVAL_BUDGET = 6 * 60  # seconds


def train_some(model, optimizer, steps):
    model.train()
    for _ in range(steps):
        x = torch.randn(32, 64)
        loss = nn.functional.mse_loss(model(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(net, budget):
    """Monte-Carlo robustness estimate: keeps drawing perturbations until the budget is used."""
    net.eval()
    start = time.monotonic()
    worst, draws = 0.0, 0
    while time.monotonic() - start < budget:
        x = torch.randn(256, 64)
        clean = net(x)
        for scale in (0.01, 0.03, 0.1, 0.3):
            noisy = net(x + scale * torch.randn_like(x))
            worst = max(worst, (noisy - clean).norm(dim=1).max().item() / scale)
        draws += 1
        if draws == 1:
            print("READY", flush=True)
        if draws % 200 == 0:
            print(f"[rank 0] eval: {draws} draws, worst gain {worst:.3f}", flush=True)
    return worst


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=2))
    rank = int(os.environ["RANK"])
    net = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 64))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1):
        loss = train_some(model, optimizer, steps=20)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f}, evaluating", flush=True)
            print(f"epoch {epoch} worst gain {evaluate(net, EVAL_BUDGET):.3f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
