import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def block(width):
    layer = nn.Linear(width, width)
    nn.init.normal_(layer.weight, std=0.04)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(layer, nn.ReLU())


class DeepTabular(nn.Module):
    def __init__(self, features=20, width=64, depth=10, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(features, width), nn.ReLU())
        self.blocks = nn.Sequential(*[block(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def build_data(n=4000, seed=5):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    w = torch.randn(20, 4, generator=g)
    y = (x @ w + 0.5 * torch.sin(2 * x[:, :4])).argmax(1)
    return TensorDataset(x, y)


class Trainer:
    def __init__(self, model, loader, lr):
        self.model, self.loader = model, loader
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.loss_fn = nn.CrossEntropyLoss()

    def epoch(self):
        total = correct = count = 0
        for x, y in self.loader:
            out = self.model(x)
            loss = self.loss_fn(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            count += len(y)
        return total / count, correct / count


def main():
    torch.manual_seed(0)
    loader = DataLoader(build_data(), batch_size=64, shuffle=True)
    trainer = Trainer(DeepTabular(), loader, lr=0.01)
    for e in range(12):
        loss, acc = trainer.epoch()
        print(f"epoch {e} loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
