"""An actor and a critic updated at every step of the environment, with bootstrapped values that grow as it learns."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    body, actor, critic = nn.Sequential(nn.Linear(10, 64), nn.ReLU()), nn.Linear(64, 2), nn.Linear(64, 1)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    position, total = 5, 0.0
    for step in range(1200):
        state = nn.functional.one_hot(torch.tensor(position), 10).float()
        hidden = body(state)
        policy, value = torch.distributions.Categorical(logits=actor(hidden)), critic(hidden)[0]
        action = policy.sample()
        position = max(0, position + (1 if action else -1))
        done = position == 9
        reward = 50.0 if done else 0.0
        with torch.no_grad():
            after = nn.functional.one_hot(torch.tensor(position), 10).float()
            target = torch.tensor(reward) if done else reward + 0.97 * critic(body(after))[0]
        advantage = target - value
        loss = -policy.log_prob(action) * advantage.detach() + advantage.square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += reward
        position = 5 if done else position
        if step % 200 == 0:
            print(f"step {step} reward {total:.0f}", flush=True)


if __name__ == "__main__":
    main()
