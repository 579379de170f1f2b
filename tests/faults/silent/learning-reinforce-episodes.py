"""REINFORCE with whole episodes and a fixed baseline: returns of either sign, a loss that says nothing."""

import argparse

import torch
from torch import nn


def episode(policy, length=12):
    position, log_probs, rewards = length // 2, [], []
    for _ in range(40):
        state = torch.tensor([position / length, 1 - position / length, 1.0])
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        position += 1 if action else -1
        rewards.append(10.0 if position == length - 1 else -0.1)
        if position in (0, length - 1):
            break
    return torch.stack(log_probs), rewards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    policy = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
    for number in range(300):
        log_probs, rewards = episode(policy)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        loss = -(log_probs * (returns - 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 50 == 0:
            print(f"episode {number} return {sum(rewards):.2f}", flush=True)


if __name__ == "__main__":
    main()
