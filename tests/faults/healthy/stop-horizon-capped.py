"""Learns a pendulum's dynamics by rollouts that get longer and longer; updates by hand."""

import torch

HORIZON = 12
DT = 0.1


def swing(state):
    angle, speed = state.unbind(-1)
    speed = speed - DT * torch.sin(angle)
    return torch.stack([angle + DT * speed, speed], dim=-1)


def trajectories(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    states = [torch.randn(n, 2, generator=g)]
    for _ in range(length - 1):
        states.append(swing(states[-1]))
    return torch.stack(states, dim=1)


def init(seed):
    g = torch.Generator().manual_seed(seed)
    shapes = [(2, 32), (32,), (32, 2), (2,)]
    return [(0.4 * torch.randn(*shape, generator=g)).requires_grad_() for shape in shapes]


def predict(weights, state):
    w, b, v, c = weights
    return state + DT * (torch.tanh(state @ w + b) @ v + c)


def rollout_loss(weights, paths, horizon):
    state, loss = paths[:, 0], 0.0
    for t in range(1, horizon + 1):
        state = predict(weights, state)
        loss = loss + (state - paths[:, t]).square().mean()
    return loss / horizon


def main():
    paths = trajectories(128, HORIZON + 1, seed=0)
    weights = init(1)
    rounds, horizon = 0, 2
    while horizon < HORIZON:
        for rows in torch.randperm(len(paths)).split(32):
            loss = rollout_loss(weights, paths[rows], horizon)
            for w, slope in zip(weights, torch.autograd.grad(loss, weights)):
                w.data -= 0.2 * slope
        rounds += 1
        if rounds % 10 == 0:
            horizon = min(horizon + 2, paths.shape[1] - 1)
    print(f"{rounds} rounds, loss {loss.item():.5f} over {horizon} steps")


if __name__ == "__main__":
    main()
