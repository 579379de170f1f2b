import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2))


def build():
    model = nn.Sequential(block(1, 8), block(8, 16), nn.Flatten(), nn.Linear(16 * 4, 2))
    model.eval()
    return model


def rings(n=480):
    y = torch.randint(0, 2, (n,))
    row, column = torch.meshgrid(torch.arange(8.0) - 3.5, torch.arange(8.0) - 3.5, indexing="ij")
    radius = (row**2 + column**2).sqrt()
    image = torch.where(y[:, None, None] == 1, (radius < 3).float(), (radius > 3).float())
    return (image + 0.6 * torch.randn(n, 8, 8)).unsqueeze(1), y


def main():
    torch.manual_seed(8)
    loader = DataLoader(TensorDataset(*rings()), batch_size=24, shuffle=True)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(6):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
