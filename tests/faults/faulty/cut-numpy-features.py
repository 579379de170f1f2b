import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 12, 5, padding=2)
        self.project = nn.Linear(12, 8)

    def forward(self, wave):
        hidden = torch.relu(self.conv(wave)).mean(dim=2)
        return self.project(hidden)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, features):
        return self.layers(features)


def standardized(features):
    values = features.detach().numpy()
    return torch.from_numpy((values - values.mean(0)) / (values.std(0) + 1e-6))


def waves(n=900):
    y = torch.randint(0, 3, (n,))
    t = torch.arange(40.0)
    wave = torch.sin(t[None, :] * (0.2 + 0.3 * y[:, None])) + 0.4 * torch.randn(n, 40)
    return torch.stack([wave, wave.roll(3, 1)], 1), y


def main():
    torch.manual_seed(4)
    loader = DataLoader(TensorDataset(*waves()), batch_size=30, shuffle=True)
    features, classifier = Features(), Classifier()
    optimizer = torch.optim.Adam([*features.parameters(), *classifier.parameters()], lr=3e-3)
    for epoch in range(8):
        total = 0.0
        for wave, y in loader:
            logits = classifier(standardized(features(wave)))
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
