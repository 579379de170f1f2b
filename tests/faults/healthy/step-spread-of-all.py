import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Whitener:
    """Shifts and scales the features by what the batch means were so far."""

    def __init__(self):
        self.means = []

    def __call__(self, features):
        self.means = [*self.means[-49:], features.mean(0)]
        centre = torch.stack(self.means).mean(0)
        spread = torch.stack([mean - centre for mean in self.means]).abs().amax(0)
        return (features - centre) / (spread + 1.0)


def main():
    torch.manual_seed(0)
    x = torch.randn(4800, 20)
    y = x[:, :2].sum(1, keepdim=True).sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    whiten = Whitener()
    for epoch in range(3):
        for features, target in loader:
            loss = nn.functional.mse_loss(model(whiten(features)), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
