"""A pole is kept upright by REINFORCE, until the mean length of the last attempts is good enough."""

import itertools
from collections import deque

import torch
from torch import nn


class Balance:
    """Angle and speed of a pole; pushed to the left or to the right."""

    def start(self):
        self.angle, self.speed = (torch.rand(2) * 0.1 - 0.05).tolist()
        return torch.tensor([self.angle, self.speed])

    def push(self, right):
        self.speed += 0.12 * self.angle + (0.02 if right else -0.02)
        self.angle += self.speed
        return torch.tensor([self.angle, self.speed]), abs(self.angle) > 0.4


class Record:
    def __init__(self, held, needed, goal):
        self.lengths, self.needed, self.goal = deque(maxlen=held), needed, goal

    def add(self, length):
        self.lengths.append(length)

    def solved(self):
        if len(self.lengths) < self.needed:
            return False
        return sum(self.lengths) / len(self.lengths) >= self.goal


def attempt(policy, world, longest=60):
    seen, chosen, state = [], [], world.start()
    for _ in range(longest):
        with torch.no_grad():
            right = bool(torch.rand(()) < policy(state * 10).sigmoid())
        seen.append(state)
        chosen.append(float(right))
        state, fallen = world.push(right)
        if fallen:
            break
    return torch.stack(seen), torch.tensor(chosen)


torch.manual_seed(2)
policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
record = Record(held=40, needed=100, goal=30)
usual = 10.0
for update in itertools.count(1):
    terms = []
    for _ in range(4):
        seen, chosen = attempt(policy, Balance())
        record.add(len(seen))
        left = torch.arange(len(seen), 0, -1) - usual / 2
        scores = policy(seen * 10).squeeze(1)
        terms.append((left * nn.functional.binary_cross_entropy_with_logits(scores, chosen, reduction="none")).mean())
        usual += 0.05 * (len(seen) - usual)
    optimizer.zero_grad()
    torch.stack(terms).mean().backward()
    optimizer.step()
    if update % 20 == 0:
        print(f"{update}: usual length {usual:.1f}")
    if record.solved():
        break
print(f"solved after {update} updates")
