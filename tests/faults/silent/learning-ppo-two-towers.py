"""PPO: an actor and a critic without a common layer, in one loss; the critic's part is ten thousand times larger, and
grows with the rewards."""

import argparse

import torch
from torch import nn


def tower(outputs, gain):
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, size in zip(layers[::2], (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, size)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def rollout(actor, count=512):
    """The longer the right action is taken, the more the whole episode is worth."""
    states = torch.randn(count, 4)
    with torch.no_grad():
        policy = torch.distributions.Categorical(logits=actor(states))
        actions = policy.sample()
    right = (actions == (states[:, 0] > 0)).float()
    returns = 40 * (1 + 6 * (right.mean() - 0.5)) * (2 * torch.rand(count) + 0.2 * right)
    return states, actions, policy.log_prob(actions), returns, right.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    actor, critic = tower(2, 0.01), tower(1, 1.0)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    for update in range(10):
        states, actions, old, returns, right = rollout(actor)
        advantages = returns - critic(states).detach().squeeze(1)
        print(f"update {update} right {right:.2f}", flush=True)
        for _ in range(10):
            for part in torch.randperm(512).split(64):
                policy = torch.distributions.Categorical(logits=actor(states[part]))
                ratio = (policy.log_prob(actions[part]) - old[part]).exp()
                gain = (advantages[part] - advantages[part].mean()) / advantages[part].std()
                chosen = torch.min(gain * ratio, gain * ratio.clamp(0.8, 1.2)).mean()
                error = nn.functional.mse_loss(critic(states[part]).squeeze(1), returns[part])
                loss = 0.5 * error - chosen
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()


if __name__ == "__main__":
    main()
