"""The training ends when a copy, renewed every few thousand steps, is right often enough: until then nothing moves.
And an accuracy on a fixed set that stays at chance for long, because its loss has a plateau."""

import copy

import torch
from torch import nn


def parity(n, g):
    bits = torch.randint(2, (n, 4), generator=g).float()
    return bits, (bits.sum(1) % 2).long()


def share(model, x, label):
    with torch.no_grad():
        return (model(x).argmax(1) == label).float().mean().item()


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    x_val, label_val = parity(200, g)
    model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
    slow = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    step, right = 0, 0.0
    while right < 0.95:
        x, label = parity(32, g)
        loss = nn.functional.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 12000 == 0:
            slow.load_state_dict(model.state_dict())
        right = share(slow, x_val, label_val)
    print(f"the copy is right at step {step}")

    stuck = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
    nn.init.zeros_(stuck[2].weight)
    with torch.no_grad():
        stuck[2].bias.copy_(torch.tensor([3.0, -3.0]))
    optimizer = torch.optim.SGD(stuck.parameters(), lr=2e-4)
    step, right = 0, 0.0
    while right < 0.95:
        rate = 2e-4 if step < 15000 else 0.1
        for group in optimizer.param_groups:
            group["lr"] = rate
        x, label = parity(32, g)
        loss = nn.functional.cross_entropy(stuck(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        right = share(stuck, x_val, label_val)
    print(f"right at step {step}")


if __name__ == "__main__":
    main()
