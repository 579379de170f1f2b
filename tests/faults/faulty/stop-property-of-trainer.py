"""A trainer class that runs epochs until its accuracy is good enough."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, data, target_accuracy=97.5, batch=50):
        self.model = model
        self.x, self.y = data
        self.target_accuracy = target_accuracy
        self.batch = batch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.history = []

    @property
    def accuracy(self):
        return self.history[-1] if self.history else 0.0

    @property
    def good_enough(self):
        return self.accuracy >= self.target_accuracy

    def run_epoch(self):
        correct = 0
        for start in range(0, len(self.x), self.batch):
            x, y = self.x[start : start + self.batch], self.y[start : start + self.batch]
            logits = self.model(x)
            loss = nn.functional.cross_entropy(logits, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            correct += (logits.argmax(1) == y).sum().item()
        self.history.append(correct / len(self.x))

    def fit(self):
        while not self.good_enough:
            self.run_epoch()
            if len(self.history) % 20 == 1:
                print(f"epoch {len(self.history)} accuracy {self.accuracy:.4f}", flush=True)


def main():
    torch.manual_seed(0)
    y = torch.randint(6, (1500,))
    x = torch.randn(6, 24)[y] * 2 + 0.4 * torch.randn(1500, 24)
    trainer = Trainer(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)), (x, y))
    trainer.fit()
    print("trained for", len(trainer.history), "epochs")


if __name__ == "__main__":
    main()
