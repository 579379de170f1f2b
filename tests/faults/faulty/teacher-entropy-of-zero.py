"""A student learns from a sharp teacher; samples that the teacher is sure of count more."""

import torch
from torch import nn


def net(width):
    return nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 5))


class Distiller:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher, student
        self.optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)

    @torch.no_grad()
    def confidence(self, x):
        probabilities = torch.softmax(self.teacher(x) * 400, dim=1)
        entropy = -(probabilities * probabilities.log()).sum(1)
        return probabilities, (1 - entropy / entropy.max()).clamp_min(0)

    def step(self, x):
        probabilities, sure = self.confidence(x)
        log_student = torch.log_softmax(self.student(x), dim=1)
        loss = -((probabilities * log_student).sum(1) * sure).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(4)
    distiller = Distiller(net(64), net(16))
    x = torch.randn(1500, 20)
    for epoch in range(6):
        losses = [distiller.step(x[rows]) for rows in torch.randperm(len(x)).split(50)]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
