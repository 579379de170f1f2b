"""Trainings whose losses become NaN in several ways, with dropout, batch norm and random data: every bit is printed."""

import random
import sys

import numpy as np
import torch
from common import show_loss, show_random_states, show_weights
from torch import nn

torch.manual_seed(3)
random.seed(3)
np.random.seed(3)


def net():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))


def broken(way, model, x, y, step):
    if way == "log" and step >= 12:
        p = model(x).softmax(-1)
        return -(p * (p > 0.4)).log().gather(1, y[:, None]).mean()
    if way == "data" and step >= 12:
        x = torch.where(torch.arange(len(x))[:, None] == 3, torch.nan, x)
    if way == "root":
        return (model(x) * (step != 12)).pow(2).sum(1).sqrt().mean()
    return nn.functional.cross_entropy(model(x), y)


for way in sys.argv[1:]:
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(40):
        x = torch.randn(8, 6)
        loss = broken(way, model, x, x[:, :3].argmax(1), step)
        opt.zero_grad()
        loss.backward()
        opt.step()
        show_loss(f"{way} {step}", loss)
    show_weights(way, model)
    print(way, "anomaly mode", torch.is_anomaly_enabled())
show_random_states()
