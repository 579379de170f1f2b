"""A regression with early stopping on a fresh sample of the validation rows, with a smallest improvement."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    """Stops when the loss has not become better for some time."""

    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.reference = float("inf")
        self.bad = 0

    def step(self, loss):
        if loss < self.reference - self.min_delta:
            self.reference = loss
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def validate(model, x, y, size=96):
    rows = torch.randperm(len(x))[:size]
    model.eval()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x[rows]), y[rows]).item()
    model.train()
    return loss


def main():
    torch.manual_seed(5)
    x = torch.randn(2400, 12)
    y = x @ torch.randn(12, 1) + 0.6 * torch.randn(2400, 1)
    loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=64, shuffle=True)
    model = nn.Linear(12, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopping = EarlyStopping(patience=25, min_delta=1e-3)

    epoch = 0
    while True:
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        val_loss = validate(model, x[1600:], y[1600:])
        epoch += 1
        if epoch % 100 == 0:
            print(f"epoch {epoch}: validation loss {val_loss:.4f}", flush=True)
        if stopping.step(val_loss):
            break
    print(f"stopped after {epoch} epochs")


if __name__ == "__main__":
    main()
