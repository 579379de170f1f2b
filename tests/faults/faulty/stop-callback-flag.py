"""A trainer with callbacks; one of them asks for the end by a flag of the trainer's state."""

import torch
from torch import nn


class State:
    def __init__(self):
        self.step = 0
        self.loss = None
        self.stop_requested = False


class StopAtStep:
    def __init__(self, last_step):
        self.last_step = last_step

    def on_log(self, state):
        if state.step == self.last_step:
            state.stop_requested = True


class PrintLoss:
    def on_log(self, state):
        if state.step % 1000 == 0:
            print(f"step {state.step} loss {state.loss:.4f}", flush=True)


class Engine:
    log_every = 8

    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.state = State()

    def train_step(self):
        x = torch.randn(32, 10)
        y = x.abs().sum(1, keepdim=True)
        loss = nn.functional.smooth_l1_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.state.step += 1
        self.state.loss = loss.item()

    def run(self):
        while not self.state.stop_requested:
            self.train_step()
            if self.state.step % self.log_every == 0:
                for callback in self.callbacks:
                    callback.on_log(self.state)


if __name__ == "__main__":
    torch.manual_seed(0)
    engine = Engine(nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1)), [StopAtStep(500), PrintLoss()])
    engine.run()
    print("ended at", engine.state.step)
