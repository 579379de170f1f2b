"""A trainer that asks its callbacks at every epoch; early stopping sets its count to zero when the loss falls."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience, delta=1e-3):
        self.patience, self.delta = patience, delta
        self.best, self.bad_epochs = None, 0

    def on_train_start(self, trainer):
        self.bad_epochs = 0

    def on_epoch_end(self, trainer):
        if self.best is None or trainer.metrics["val"] < self.best - self.delta:
            self.best, self.bad_epochs = trainer.metrics["val"], 0
        else:
            self.bad_epochs += 1
        if self.bad_epochs > self.patience:
            trainer.should_stop = True


class Trainer:
    def __init__(self, model, *callbacks):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.metrics, self.epoch, self.should_stop = {}, 0, False

    def call(self, hook, *args):
        for callback in self.callbacks:
            if hasattr(callback, hook):
                getattr(callback, hook)(self, *args)

    def validate(self, loader):
        with torch.no_grad():
            losses = [nn.functional.cross_entropy(self.model(x), y).item() for x, y in loader]
        return sum(losses) / len(losses)

    def fit(self, train, valid):
        while not self.should_stop:
            self.call("on_epoch_start")
            for x, y in train:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.metrics["val"] = self.validate(valid)
            self.call("on_epoch_end")
            self.epoch += 1
            if self.epoch % 25 == 0:
                print(f"epoch {self.epoch} val {self.metrics['val']:.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(3)
    x = torch.randn(640, 10)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train = DataLoader(TensorDataset(x[:480], y[:480]), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(x[480:], y[480:]), batch_size=80)
    Trainer(nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2)), EarlyStopping(patience=4)).fit(train, valid)
    print("done")
