"""Longer sequences once the last answers were mostly right."""

from collections import deque

import torch
from torch import nn
from torch.nn import functional as F


class Lessons:
    def __init__(self, last=5, window=40, goal=0.9):
        self.length, self.last, self.goal, self.window = 2, last, goal, window
        self.right = deque(maxlen=window)

    def note(self, shares):
        self.right.extend(shares)
        if len(self.right) > self.window and sum(self.right) / len(self.right) > self.goal:
            self.length += 1
            self.right.clear()


def batch(length):
    bits = torch.randint(0, 2, (32, length))
    return F.one_hot(bits, 2).float(), bits[:, 0]


torch.manual_seed(0)
cell, head = nn.GRU(2, 24, batch_first=True), nn.Linear(24, 2)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=5e-3)
lessons, step = Lessons(), 0
while lessons.length <= lessons.last:
    x, first = batch(lessons.length)
    answer = head(cell(x)[0][:, -1])
    loss = F.cross_entropy(answer, first)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lessons.note((answer.argmax(1) == first).float().tolist())
    step += 1
print(f"done after {step} steps")
