import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AudioNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x):
        return self.classifier(self.features(x))


def tones(n, classes, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    t = torch.linspace(0, 1, 96)
    freq = 3.0 + 2.5 * y.float()
    phase = torch.rand(n, generator=g) * 6.28
    wave = torch.sin(6.28 * freq[:, None] * t[None] + phase[:, None])
    return (wave + 0.5 * torch.randn(n, 96, generator=g)).unsqueeze(1), y


def adapt(model, classes):
    model.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes))
    return model


def main():
    torch.manual_seed(0)
    x, y = tones(1600, classes=8)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = AudioNet(classes=100)
    model = adapt(model, classes=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        total, hits = 0.0, 0
        for wave, label in loader:
            optimizer.zero_grad()
            logits = model(wave)
            loss = criterion(logits, label)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (logits.argmax(1) == label).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / len(x):.3f}", flush=True)


if __name__ == "__main__":
    main()
