import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def plankton(n=1600, classes=5):
    g = torch.Generator().manual_seed(0)
    proto = torch.randn(classes, 1, 12, 12, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(proto[y] + 0.8 * torch.randn(n, 1, 12, 12, generator=g), y)


class PlanktonNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3)
        self.c2 = nn.Conv2d(16, 32, 3, stride=2)
        self.fc = nn.Linear(32 * 16, classes)

    def forward(self, x):
        x = torch.relu(self.c1(x))
        x = torch.relu(self.c2(x))
        return self.fc(x.flatten(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(plankton(), batch_size=32, shuffle=True)
    model = PlanktonNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=2.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.3)
    for epoch in range(10):
        total, hits = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        scheduler.step()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 1600:.3f}", flush=True)


if __name__ == "__main__":
    main()
