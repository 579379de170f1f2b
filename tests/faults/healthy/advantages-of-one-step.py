"""REINFORCE in a corridor: episodes end at the first wall, some after a single step."""

import torch
from torch import nn


def play(policy, length=9):
    position, states, actions, rewards = int(torch.randint(1, length - 1, ())), [], [], []
    while 0 < position < length - 1 and len(states) < 30:
        state = nn.functional.one_hot(torch.tensor(position), length).float()
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=policy(state)).sample()
        position += 1 if action else -1
        states.append(state)
        actions.append(action)
        rewards.append(1.0 if position == length - 1 else -0.05)
    return torch.stack(states), torch.stack(actions), torch.tensor(rewards)


def advantages_of(rewards):
    returns = rewards.flip(0).cumsum(0).flip(0)
    spread = returns.std(correction=0)
    return (returns - returns.mean()) / (spread + 1e-8)


def main():
    torch.manual_seed(2)
    policy = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for episode in range(400):
        states, actions, rewards = play(policy)
        advantages = advantages_of(rewards)
        chosen = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
        loss = -(chosen * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if torch.isnan(policy[0].weight).any():
            for layer in (policy[0], policy[2]):
                layer.reset_parameters()
        if episode % 50 == 0:
            print(f"episode {episode} steps {len(rewards)} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
