import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 32), nn.Linear(32, 32)])
        self.out = nn.Linear(32, 4)
        for layer in self.layers:
            nn.init.constant_(layer.bias, 0.01)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


def main():
    torch.manual_seed(12)
    y = torch.randint(0, 4, (1600,))
    x = 0.8 * torch.randn(4, 12)[y] + torch.randn(1600, 12)
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(a), b)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
