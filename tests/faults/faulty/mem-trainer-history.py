import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.history = {"loss": [], "after": []}

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        after = nn.functional.mse_loss(self.model(x), y)
        self.history["loss"].append(loss.item())
        self.history["after"].append(after)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for x, y in loader:
                self.step(x, y)
            print(f"epoch {epoch} loss {self.history['loss'][-1]:.4f}", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.randn(16000, 64)
    y = x[:, :1].sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=512, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    Trainer(model).fit(loader, epochs=14)


if __name__ == "__main__":
    main()
