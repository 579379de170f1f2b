"""Q-learning in a corridor, with a target network that should follow slowly."""

import copy
import random
from collections import deque

import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)
CELLS, GAMMA = 12, 0.9


class Walker:
    def __init__(self, tau=0.05):
        self.online = nn.Sequential(nn.Linear(CELLS, 48), nn.ReLU(), nn.Linear(48, 2))
        self.target = copy.deepcopy(self.online)
        self.adam = torch.optim.Adam(self.online.parameters(), lr=2e-3)
        self.tau, self.memory = tau, deque(maxlen=4000)

    @torch.no_grad()
    def follow(self):
        for old, new in zip(self.target.parameters(), self.online.parameters()):
            old.copy_((1 - self.tau) * old + self.tau * new)

    def learn(self):
        cell, move, reward, after = zip(*random.sample(self.memory, 48))
        place = torch.eye(CELLS)
        value = self.online(place[list(cell)]).gather(1, torch.tensor(move)[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.target(place[list(after)]).amax(1)
        reward = torch.tensor(reward)
        loss = nn.functional.smooth_l1_loss(value, reward + GAMMA * (1 - reward) * best)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        self.follow()
        return loss.item()


walker = Walker()
for step in range(2500):
    cell, move = random.randrange(CELLS - 1), random.randrange(2)
    after = max(0, cell - 1) if move == 0 else cell + 1
    walker.memory.append((cell, move, float(after == CELLS - 1), after))
    if step >= 200:
        loss = walker.learn()
    if step % 500 == 499:
        best = walker.online(torch.eye(CELLS)[:-1]).argmax(1)
        print(step + 1, loss, "cells that go right:", int(best.sum()))
