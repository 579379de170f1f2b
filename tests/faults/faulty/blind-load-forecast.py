"""Day-ahead forecast of a (simulated) electrical load curve, with EMA weights and early stopping."""
import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def simulate(hours=24 * 240, seed=3):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours, dtype=torch.float32)
    day = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 0.7)
    week = 0.5 * torch.cos(2 * math.pi * t / 168)
    noise = torch.zeros(hours)
    e = 0.15 * torch.randn(hours, generator=g)
    for i in range(1, hours):
        noise[i] = 0.8 * noise[i - 1] + e[i]
    load = 50 + 12 * day + 8 * week + 6 * noise
    return (load - load.mean()) / load.std()


def windows(series, past=72, ahead=24):
    w = series.unfold(0, past + ahead, 1)
    return w[:, :past].clone(), w[:, past:].clone()


class EarlyStopping:
    """Stops the training when the monitored loss has not improved for `patience` epochs."""

    def __init__(self, patience=6, min_delta=5e-4):
        self.patience, self.min_delta = patience, min_delta
        self.best = math.inf
        self.wait = 0
        self.stop = False

    def __call__(self, value):
        if value - self.best < self.min_delta:
            self.best = value
            self.wait = 0
            return True
        self.wait += 1
        self.stop = self.wait >= self.patience
        return False


class Ema:
    def __init__(self, model, decay=0.995):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for a, b in zip(self.model.parameters(), model.parameters()):
            a.lerp_(b, 1 - self.decay)


class Forecaster(nn.Module):
    def __init__(self, past=72, ahead=24, hidden=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 16, 5, padding=2, stride=2),
                                  nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * past // 2, hidden), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(hidden, ahead))

    def forward(self, x):
        return self.head(self.conv(x.unsqueeze(1)))


class Engine:
    def __init__(self, model, train_loader, val_data, stopper):
        self.model, self.ema = model, Ema(model)
        self.train_loader, self.val_data, self.stopper = train_loader, val_data, stopper
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=1e-4)
        self.epoch = 0
        self.best_state = None

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.ema.update(self.model)
            total += loss.item() * len(x)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        x, y = self.val_data
        return nn.functional.smooth_l1_loss(self.ema.model(x), y).item()

    def run(self):
        while not self.stopper.stop:
            train = self.train_epoch()
            val = self.validate()
            if self.stopper(val):
                self.best_state = copy.deepcopy(self.ema.model.state_dict())
            self.epoch += 1
            print(f"epoch {self.epoch:3d}  train {train:.4f}  val {val:.4f}", flush=True)
        self.ema.model.load_state_dict(self.best_state)
        print(f"stopped after {self.epoch} epochs, best {self.stopper.best:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    series = simulate()
    split = int(0.8 * len(series))
    x, y = windows(series[:split])
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    engine = Engine(Forecaster(), loader, windows(series[split:]), EarlyStopping())
    engine.run()
