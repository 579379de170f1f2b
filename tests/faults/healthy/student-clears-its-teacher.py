"""A small student learns the scores of a fixed teacher, with clipped steps of its own."""

import torch
from torch import nn

torch.manual_seed(4)
teacher = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 5))
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 5))
inputs = torch.randn(4096, 16)
with torch.no_grad():
    scores = 3 * teacher(inputs)


def descend(model, rate):
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(rate * parameter.grad)


for epoch in range(25):
    total = 0.0
    for rows in torch.randperm(4096).split(64):
        student.zero_grad()
        loss = nn.functional.mse_loss(student(inputs[rows]), scores[rows])
        loss.backward()
        descend(student, 0.1)
        total += loss.item()
    print(f"epoch {epoch}: distance {total / 64:.4f}")
