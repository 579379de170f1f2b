"""Two-stage pipeline over gloo: activations go forward, gradients come back, with send and recv."""

import time

import torch
import torch.distributed as dist
from torch import nn

BATCH, WIDTH = 128, 1024
MAX_MINUTES = 6


def mlp(depth, out):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(WIDTH, WIDTH), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, out))


def first_stage(model, optimizer, x):
    hidden = model(x)
    dist.send(hidden.detach(), dst=1)
    grad = torch.empty_like(hidden)
    dist.recv(grad, src=1)
    optimizer.zero_grad()
    hidden.backward(grad)
    optimizer.step()


def second_stage(model, optimizer, y):
    hidden = torch.empty(BATCH, WIDTH)
    dist.recv(hidden, src=0)
    hidden.requires_grad_(True)
    loss = nn.functional.cross_entropy(model(hidden), y)
    optimizer.zero_grad()
    loss.backward()
    dist.send(hidden.grad, dst=0)
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = mlp(depth=3, out=WIDTH if rank == 0 else 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    start = time.time()
    step = 0
    while True:
        x, y = torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))
        if rank == 0:
            first_stage(model, optimizer, x)
        else:
            loss = second_stage(model, optimizer, y)
            if step == 0:
                print("READY", flush=True)
            if step % 20 == 0:
                print(f"step {step} loss {loss:.4f}", flush=True)
        step += 1
        if step % 100 == 0:
            over = torch.tensor(float(time.time() - start > 60 * MAX_MINUTES))
            dist.all_reduce(over)
            if over:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
