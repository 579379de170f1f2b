"""A short training epoch, then a long validation pass with its own loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self, n, seed):
        self.n = n
        self.seed = seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        label = i % 5
        return torch.randn(3, 64, 64, generator=g) + 0.1 * label, label


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        return torch.relu(self.bn(self.conv2(x)))


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    correct = seen = 0
    for i, (x, y) in enumerate(loader):
        correct += (model(x).argmax(1) == y).sum().item()
        seen += len(y)
        if i == 0:
            print("READY", flush=True)
        if i % 20 == 0:
            print(f"  val {i}/{len(loader)} acc {correct / seen:.3f}", flush=True)
    return correct / seen


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = nn.Sequential(
        Block(3, 48), Block(48, 96), Block(96, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 5)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train_loader = DataLoader(Patches(128, seed=0), batch_size=32, shuffle=True)
    val_loader = DataLoader(Patches(1_000_000, seed=10**6), batch_size=64, num_workers=1)
    for epoch in range(3):
        train(model, train_loader, optimizer)
        print(f"epoch {epoch}: validating", flush=True)
        print(f"epoch {epoch}: accuracy {validate(model, val_loader):.4f}", flush=True)
