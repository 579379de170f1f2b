"""Healthy twin: the memory fades a little, and gradients are clipped."""

import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.write = nn.Linear(3, width)
        self.keep = nn.Parameter(torch.eye(width) + 0.08 * torch.randn(width, width) / width**0.5)
        self.read = nn.Linear(width, 1)

    def forward(self, sequence):
        state = torch.zeros(sequence.shape[0], self.keep.shape[0])
        for row in sequence.unbind(1):
            state = torch.relu(state @ self.keep * 0.9 + self.write(row))
        return self.read(state)


def batch(g, n=24, steps=80):
    sequence = torch.randn(n, steps, 3, generator=g)
    return sequence, sequence[:, :5, 0].mean(1, keepdim=True)


def main():
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(3)
    model = Memory()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for step in range(150):
        sequence, wanted = batch(g)
        loss = nn.functional.mse_loss(model(sequence), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4g}", flush=True)


if __name__ == "__main__":
    main()
