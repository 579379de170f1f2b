import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 1, 16, 16, generator=g) * 0.8
    for k in range(4):
        x[y == k, :, k * 4:k * 4 + 4, :] += 0.5
    return x, y


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.fc = nn.Linear(512, 4)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def semi_loss(model, xl, yl, xu, weight=0.3, threshold=0.8):
    sup = F.cross_entropy(model(xl), yl)
    with torch.no_grad():
        conf, pseudo = F.softmax(model(xu), 1).max(1)
    noisy = model(xu + 0.2 * torch.randn_like(xu))
    unsup = (F.cross_entropy(noisy, pseudo, reduction="none") * (conf > threshold)).mean()
    return sup + weight * unsup


def main():
    torch.manual_seed(0)
    labelled = DataLoader(TensorDataset(*make(1600, 0)), batch_size=16, shuffle=True)
    unlabelled = DataLoader(TensorDataset(make(1600, 1)[0]), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(*make(3000, 2)), batch_size=100)
    model = Student()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    pairs = zip(labelled, unlabelled)
    for epoch in range(10):
        model.train()
        for (xl, yl), (xu,) in pairs:
            loss = semi_loss(model, xl, yl, xu)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch} last loss {loss.item():.4f} val acc {hits / 3000:.3f}", flush=True)


if __name__ == "__main__":
    main()
