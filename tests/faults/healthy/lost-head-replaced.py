import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.fc = nn.Linear(72, classes)

    def forward(self, x):
        return self.fc(self.body(x))


def stripes(n=600):
    kind = torch.randint(0, 4, (n,))
    row, column = torch.meshgrid(torch.arange(9.0), torch.arange(9.0), indexing="ij")
    patterns = torch.stack([row.sin(), column.sin(), (row + column).sin(), (row - column).sin()])
    return patterns[kind].unsqueeze(1) + 0.5 * torch.randn(n, 1, 9, 9), kind


def main():
    torch.manual_seed(1)
    loader = DataLoader(TensorDataset(*stripes()), batch_size=30, shuffle=True)
    model = Net()
    model.fc = nn.Linear(72, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(8):
        right = seen = 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((out.argmax(1) == y).sum())
            seen += len(y)
        print(f"epoch {epoch} accuracy {right / seen:.3f}", flush=True)


if __name__ == "__main__":
    main()
