"""A few labels and many points without: the student agrees with a teacher that is the average of its own past."""

import torch
from torch import nn

torch.manual_seed(6)


def rings(count):
    kind = torch.randint(0, 2, (count,))
    angle, radius = 6.283 * torch.rand(count), 1.0 + kind + 0.15 * torch.randn(count)
    return torch.stack((radius * angle.cos(), radius * angle.sin()), 1), kind


def network():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def average(slow, fast, decay):
    with torch.no_grad():
        for (name, kept), (_, now) in zip(slow.named_parameters(), fast.named_parameters()):
            kept.lerp_(now, 1 - decay)


student, teacher = network(), network()
teacher.load_state_dict(student.state_dict())
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
labelled, kind = rings(12)
for step in range(1200):
    points, _ = rings(96)
    wanted = teacher(points + 0.05 * torch.randn_like(points)).softmax(1)
    agree = (student(points).softmax(1) - wanted).square().sum(1).mean()
    loss = nn.functional.cross_entropy(student(labelled), kind) + 5 * agree
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average(teacher, student, 0.98)
    if step % 200 == 199:
        points, known = rings(1000)
        right = [(net(points).argmax(1) == known).float().mean().item() for net in (student, teacher)]
        print(step + 1, loss.item(), right)
