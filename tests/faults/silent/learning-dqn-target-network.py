"""DQN with replay buffer and a target network on a 6x6 gridworld; the target net never receives gradients."""

import argparse
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
random.seed(args.seed)
torch.set_num_threads(1)

SIZE = 6
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


def encode(pos):
    v = torch.zeros(2 * SIZE)
    v[pos[0]] = 1.0
    v[SIZE + pos[1]] = 1.0
    return v


def env_step(pos, action):
    dx, dy = MOVES[action]
    new = (min(max(pos[0] + dx, 0), SIZE - 1), min(max(pos[1] + dy, 0), SIZE - 1))
    done = new == (SIZE - 1, SIZE - 1)
    return new, (1.0 if done else -0.02), done


q = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))
target = copy.deepcopy(q).requires_grad_(False)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
buffer = deque(maxlen=5000)

returns, steps = [], 0
for episode in range(120):
    pos, total = (0, 0), 0.0
    epsilon = max(0.05, 1.0 - episode / 60)
    for t in range(50):
        state = encode(pos)
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = q(state).argmax().item()
        pos, reward, done = env_step(pos, action)
        buffer.append((state, action, reward, encode(pos), float(done)))
        total += reward
        steps += 1
        if len(buffer) >= 200:
            s, a, r, s2, d = zip(*random.sample(buffer, 64))
            s, s2 = torch.stack(s), torch.stack(s2)
            a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d)
            with torch.no_grad():
                y = r + 0.95 * (1 - d) * target(s2).max(1).values
            loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if steps % 100 == 0:
            target.load_state_dict(q.state_dict())
        if done:
            break
    returns.append(total)
    if (episode + 1) % 20 == 0:
        print(f"episode {episode + 1} mean return {sum(returns[-20:]) / 20:.3f} loss {loss.item():.5f}")
