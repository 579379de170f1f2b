import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Batches:
    """Moves batches to the device, and starts the loader again when it is empty."""

    def __init__(self, loader, device, repeat=False):
        self.loader = loader
        self.device = device
        self.repeat = repeat

    def __iter__(self):
        while True:
            for x, y in self.loader:
                yield x.to(self.device), y.to(self.device)
            if not self.repeat:
                return


class Evaluator:
    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def run(self, batches):
        self.model.eval()
        total, count = 0.0, 0
        for x, y in batches:
            total += nn.functional.l1_loss(self.model(x), y, reduction="sum").item()
            count += len(x)
        return total / count


class Trainer:
    def __init__(self, model, train, val, steps_per_epoch=60):
        self.model = model
        self.train = iter(train)
        self.val = val
        self.steps_per_epoch = steps_per_epoch
        self.evaluator = Evaluator(model)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def training_step(self, batch):
        x, y = batch
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            losses = [self.training_step(next(self.train)) for _ in range(self.steps_per_epoch)]
            print(f"epoch {epoch} train {sum(losses) / len(losses):.4f}", flush=True)
            print(f"epoch {epoch} val {self.evaluator.run(self.val):.4f}", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.randn(1500, 9)
    y = x.abs().sum(1, keepdim=True)
    train = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=20, shuffle=True)
    val = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=50)
    model = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Linear(64, 1))
    Trainer(model, Batches(train, "cpu", repeat=True), Batches(val, "cpu")).fit(epochs=4)


main()
