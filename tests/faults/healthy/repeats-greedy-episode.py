"""DQN on a grid world; after some training the greedy policy plays one episode to the goal."""

import random
from collections import deque

import torch
from torch import nn

SIZE = 9
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class Grid:
    def reset(self):
        self.at = (0, 0)
        return self.observe()

    def observe(self):
        return torch.tensor([self.at[0] / SIZE, self.at[1] / SIZE])

    def step(self, action):
        row = min(max(self.at[0] + MOVES[action][0], 0), SIZE - 1)
        col = min(max(self.at[1] + MOVES[action][1], 0), SIZE - 1)
        self.at = (row, col)
        done = self.at == (SIZE - 1, SIZE - 1)
        return self.observe(), (1.0 if done else 0.0), done


class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.memory = deque(maxlen=2000)

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return int(self.q(state).argmax())

    def learn(self):
        batch = random.sample(self.memory, 32)
        s, a, r, s2, d = map(list, zip(*batch))
        with torch.no_grad():
            target = torch.tensor(r) + 0.9 * self.q(torch.stack(s2)).max(1).values * (1 - torch.tensor(d).float())
        q = self.q(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
        loss = nn.functional.mse_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def play(env, agent):
    state, done, total, moves = env.reset(), False, 0.0, 0
    while not done and moves < 200:
        state, reward, done = env.step(agent.act(state, epsilon=0.0))
        total += reward
        moves += 1
    return total, moves


def main():
    random.seed(4)
    torch.manual_seed(4)
    env, agent = Grid(), Agent()
    for episode in range(6):
        state = env.reset()
        for _ in range(60):
            action = agent.act(state, epsilon=0.9)
            after, reward, done = env.step(action)
            agent.memory.append((state, action, reward, after, done))
            state = after
            if len(agent.memory) > 64:
                agent.learn()
            if done:
                break
        print("episode", episode, "replay", len(agent.memory), flush=True)
    print("greedy play:", play(env, agent))


if __name__ == "__main__":
    main()
