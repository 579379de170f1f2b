"""The heart rate at every moment of a run: all states of a recurrent network of one unit."""

import torch
from torch import nn


def runs(count, moments=20):
    effort = torch.rand(count, moments, 1).round()
    rate, rates = torch.full((count, 1), 65.0), []
    for moment in range(moments):
        rate = rate + 0.2 * (70 + 90 * effort[:, moment] - rate)
        rates.append(rate)
    return effort, torch.stack(rates, dim=1)


class HeartRate(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.RNN(1, 16, batch_first=True)
        self.rate = nn.RNN(16, 1, batch_first=True)

    def forward(self, effort):
        states, _ = self.body(effort)
        return self.rate(states)[0]


def main():
    torch.manual_seed(0)
    model = HeartRate()
    parameters = list(model.parameters())
    momenta = [torch.zeros_like(p) for p in parameters]
    for step in range(400):
        effort, rates = runs(32)
        loss = nn.functional.huber_loss(model(effort), rates / 60)
        loss.backward()
        with torch.no_grad():
            for p, momentum in zip(parameters, momenta):
                momentum.mul_(0.9).add_(p.grad)
                p -= 0.01 * momentum
                p.grad = None
        if step % 80 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
