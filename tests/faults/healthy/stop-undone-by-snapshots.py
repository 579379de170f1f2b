"""A trainer with callbacks: early stopping asks for the end, the one after it keeps the best."""

import torch
from torch import nn


class State:
    def __init__(self):
        self.epoch = 0
        self.val_loss = None
        self.should_save = False
        self.should_stop = False


class Callback:
    def on_epoch_begin(self, state):
        pass

    def on_epoch_end(self, state):
        pass


class EarlyStopping(Callback):
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def on_epoch_end(self, state):
        if state.val_loss < self.best - 1e-3:
            self.best, self.waited = state.val_loss, 0
        else:
            self.waited += 1
        if self.waited >= self.patience:
            state.should_stop = True


class Snapshots(Callback):
    def __init__(self):
        self.saved = {}

    def on_epoch_end(self, state):
        if state.should_save:
            self.saved[state.epoch] = state.val_loss
        state.should_save = False


class Trainer:
    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.state = State()

    def notify(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self.state)

    def train_epoch(self, x, y):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def fit(self, train, valid):
        while not self.state.should_stop:
            self.notify("on_epoch_begin")
            self.train_epoch(*train)
            with torch.no_grad():
                self.state.val_loss = nn.functional.mse_loss(self.model(valid[0]), valid[1]).item()
            self.state.should_save = self.state.epoch % 10 == 0
            self.notify("on_epoch_end")
            self.state.epoch += 1


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(800, 6)
    y = (x[:, :1] * x[:, 1:2]) + 0.3 * torch.randn(800, 1)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    trainer = Trainer(model, [EarlyStopping(patience=6), Snapshots()])
    trainer.fit((x[:600], y[:600]), (x[600:], y[600:]))
    print("ended after", trainer.state.epoch, "epochs, best", trainer.callbacks[0].best)
