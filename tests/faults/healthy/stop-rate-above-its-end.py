"""Ridge regression on wide data: the rate is halved on a plateau, and training ends when it is tiny."""

import torch

MIN_RATE, LAST_RATE = 5e-5, 1e-4


class Halving:
    def __init__(self, rate, patience=3):
        self.rate, self.patience = rate, patience
        self.best, self.since = float("inf"), 0

    def update(self, error):
        if error < self.best * 0.999:
            self.best, self.since = error, 0
        else:
            self.since += 1
        if self.since > self.patience:
            self.rate = max(self.rate * 0.5, MIN_RATE)
            self.since = 0


def make_data(n=512, d=40):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, d, generator=g)
    return x, x @ torch.randn(d, generator=g) + 0.5 * torch.randn(n, generator=g)


def main():
    torch.manual_seed(0)
    x, y = make_data()
    model = torch.nn.Linear(x.shape[1], 1)
    plan = Halving(0.1)
    epoch = 0
    while True:
        total = 0.0
        for rows in torch.randperm(len(x)).split(64):
            loss = (model(x[rows]).squeeze(1) - y[rows]).square().mean()
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= plan.rate * p.grad
            total += loss.item()
        epoch += 1
        plan.update(total)
        if plan.rate < LAST_RATE:
            break
    print(f"{epoch} epochs, loss {total / 8:.4f}")


if __name__ == "__main__":
    main()
