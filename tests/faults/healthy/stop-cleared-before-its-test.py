"""An engine whose epoch begins by clearing its flags; the one for the end is read at its end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Engine:
    def __init__(self, model, loader, max_epochs):
        self.model, self.loader, self.max_epochs = model, loader, max_epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.epoch = 0
        self.terminate = False
        self.losses = []

    def begin_epoch(self):
        self.losses = []
        self.terminate = False

    def end_epoch(self):
        self.epoch += 1
        mean = sum(self.losses) / len(self.losses)
        if self.epoch % 50 == 0:
            print(f"epoch {self.epoch} loss {mean:.4f}", flush=True)
        if self.epoch >= self.max_epochs:
            self.terminate = True

    def train_batch(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def run(self):
        while True:
            self.begin_epoch()
            for x, y in self.loader:
                self.train_batch(x, y)
            self.end_epoch()
            if self.terminate:
                break
        return self.losses


if __name__ == "__main__":
    torch.manual_seed(1)
    x = torch.randn(512, 8)
    y = (x[:, 0] + x[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    engine = Engine(model, DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True), max_epochs=12)
    engine.run()
    print("ended after", engine.epoch, "epochs")
