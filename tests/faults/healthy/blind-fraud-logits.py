import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FraudNet(nn.Module):
    def __init__(self, d=18):
        super().__init__()
        self.bn = nn.BatchNorm1d(d)
        self.fc1 = nn.Linear(d, 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = torch.relu(self.fc1(self.bn(x)))
        x = self.drop(torch.relu(self.fc2(x)))
        return self.fc3(x).squeeze(1)


def transactions(n=5000):
    g = torch.Generator().manual_seed(11)
    x = torch.randn(n, 18, generator=g)
    s = x[:, 0] * x[:, 1] + x[:, 2] - 0.8 * x[:, 3].abs() + 0.3
    return TensorDataset(x, (s > 0).float())


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(self.loader):.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(FraudNet(), DataLoader(transactions(), batch_size=64, shuffle=True)).fit(10)
