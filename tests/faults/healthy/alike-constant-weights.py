import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inner = nn.Linear(6, width)
        self.outer = nn.Linear(width, 1)
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x))).squeeze(1)


def main():
    torch.manual_seed(14)
    x = torch.randn(1500, 6)
    y = torch.sin(x[:, 0]) * x[:, 1] - x[:, 2].abs()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(10):
        total = 0.0
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
