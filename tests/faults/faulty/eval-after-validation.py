import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 40)
        self.drop = nn.Dropout(0.4)
        self.second = nn.Linear(40, 3)

    def forward(self, x):
        return self.second(self.drop(torch.relu(self.first(x))))


def validate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in loader:
            right += int((model(x).argmax(1) == y).sum())
            seen += len(y)
    return right / seen


def clouds(n):
    y = torch.randint(0, 3, (n,))
    return torch.eye(3).repeat(1, 6)[y][:, :16] * 0.7 + torch.randn(n, 16), y


def main():
    torch.manual_seed(7)
    train = DataLoader(TensorDataset(*clouds(800)), batch_size=40, shuffle=True)
    held_out = DataLoader(TensorDataset(*clouds(200)), batch_size=100)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for epoch in range(20):
        total = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train):.4f} held out {validate(model, held_out):.3f}", flush=True)


if __name__ == "__main__":
    main()
