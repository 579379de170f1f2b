"""The rate is decayed by hand, by a factor meant for each epoch."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr=3e-3, decay=0.9):
        self.model, self.lr, self.decay = model, lr, decay
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.updates = 0

    def adjust(self):
        self.optimizer.param_groups[0]["lr"] = self.lr * self.decay**self.updates

    def fit(self, x, y, epochs=15):
        for epoch in range(epochs):
            losses = []
            for rows in torch.randperm(len(y)).split(32):
                loss = nn.functional.mse_loss(self.model(x[rows])[:, 0], y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.updates += 1
                self.adjust()
                losses.append(loss.item())
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}", flush=True)


def main():
    torch.manual_seed(7)
    x = torch.randn(1200, 10)
    y = torch.sin(2 * x[:, 0]) * x[:, 1] + x[:, 2]
    Trainer(nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))).fit(x, y)


if __name__ == "__main__":
    main()
