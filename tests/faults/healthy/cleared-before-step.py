import torch
from torch import nn


class Trainer:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=rate)
        self.history = []

    def fit(self, x, y, steps):
        for step in range(steps):
            rows = torch.randint(0, len(x), (50,))
            loss = nn.functional.smooth_l1_loss(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.history.append(loss.item())
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(10)
    x = torch.rand(1200, 3) * 2 - 1
    y = torch.stack([x.prod(1), x.sum(1)], 1)
    trainer = Trainer(nn.Sequential(nn.Linear(3, 40), nn.Tanh(), nn.Linear(40, 2)), 3e-3)
    trainer.fit(x, y, 300)


if __name__ == "__main__":
    main()
