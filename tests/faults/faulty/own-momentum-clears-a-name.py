"""Heights of waves from readings of a buoy; a small class does the descent with momentum."""

import torch
from torch import nn


class Momentum:
    def __init__(self, parameters, rate, keep):
        self.parameters = list(parameters)
        self.rate, self.keep = rate, keep
        self.speed = [torch.zeros_like(parameter) for parameter in self.parameters]

    def clear(self):
        for parameter in self.parameters:
            gradient = parameter.grad
            gradient = torch.zeros_like(parameter)

    def update(self):
        for parameter, speed in zip(self.parameters, self.speed):
            speed.mul_(self.keep).add_(parameter.grad)
            parameter.data.add_(speed, alpha=-self.rate)


torch.manual_seed(7)
readings = torch.randn(3000, 8)
height = (readings[:, :4].abs().sum(1) + 0.1 * torch.randn(3000)).unsqueeze(1)
model = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 1))
descent = Momentum(model.parameters(), rate=0.01, keep=0.8)

for epoch in range(30):
    total = 0.0
    for rows in torch.randperm(3000).split(60):
        descent.clear()
        loss = nn.functional.mse_loss(model(readings[rows]), height[rows])
        loss.backward()
        descent.update()
        total += loss.item()
    print(f"epoch {epoch}: error {total / 50:.4f}")
