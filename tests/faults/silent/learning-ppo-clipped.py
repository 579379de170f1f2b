"""PPO with a clipped ratio, a value net in the same loss, and an entropy bonus, on a small control task."""

import argparse

import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 3), nn.Linear(64, 1)

    def forward(self, state):
        hidden = self.body(state)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden)[:, 0]


@torch.no_grad()
def rollout(model, envs=32, length=16):
    state, kept = torch.randn(envs, 2), []
    for _ in range(length):
        policy, value = model(state)
        action = policy.sample()
        force = (action - 1).float()
        velocity = 0.9 * state[:, 1] + 0.3 * force
        after = torch.stack([state[:, 0] + 0.3 * velocity, velocity], 1)
        kept.append((state, action, policy.log_prob(action), value, -after[:, 0].abs()))
        state = after
    states, actions, old, values, rewards = (torch.stack(each) for each in zip(*kept, strict=True))
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantages = returns - values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return [each.flatten(0, 1) for each in (states, actions, old, advantages, returns)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(20):
        states, actions, old, advantages, returns = rollout(model)
        for _ in range(4):
            for rows in torch.randperm(len(states)).split(128):
                policy, value = model(states[rows])
                ratio = (policy.log_prob(actions[rows]) - old[rows]).exp()
                gain = torch.min(ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows]).mean()
                loss = -gain + 0.5 * (value - returns[rows]).square().mean() - 0.01 * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        print(f"update {update} return {returns.mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
