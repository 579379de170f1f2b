"""Q-learning on a small chain; the chosen values are a column, the TD targets a row."""

import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
STATES, ACTIONS, GAMMA = 12, 2, 0.9


def step(state, action):
    state = max(0, min(STATES - 1, state + (1 if action else -1)))
    done = state == STATES - 1
    return state, (1.0 if done else -0.02), done


def encode(states):
    return torch.eye(STATES)[torch.tensor(states)]


q = nn.Sequential(nn.Linear(STATES, 32), nn.ReLU(), nn.Linear(32, ACTIONS))
frozen = nn.Sequential(nn.Linear(STATES, 32), nn.ReLU(), nn.Linear(32, ACTIONS))
frozen.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=2e-3)
memory = deque(maxlen=2000)
state, moves = 0, 0
for it in range(1200):
    action = random.randrange(ACTIONS) if random.random() < 0.3 else int(q(encode([state])).argmax())
    following, reward, done = step(state, action)
    memory.append((state, action, reward, following, done))
    moves += 1
    state, moves = (random.randrange(STATES - 1), 0) if done or moves > 60 else (following, moves)
    if len(memory) < 64:
        continue
    s, a, r, n, d = zip(*random.sample(memory, 32))
    chosen = q(encode(s)).gather(1, torch.tensor(a).unsqueeze(1))
    with torch.no_grad():
        best = frozen(encode(n)).max(1).values
        target = torch.tensor(r) + GAMMA * best * (1 - torch.tensor(d, dtype=torch.float))
    td_error = target - chosen.squeeze(1)
    loss = td_error.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 100 == 0:
        frozen.load_state_dict(q.state_dict())
        print(it, round(loss.item(), 4))
