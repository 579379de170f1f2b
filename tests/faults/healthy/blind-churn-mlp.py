import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "batch_size": 64,
    "epochs": 12,
    "hidden": 64,
    "lr": 1e-1,
    "momentum": 0.9,
}


def customers(n=4000):
    g = torch.Generator().manual_seed(7)
    x = torch.randn(n, 15, generator=g)
    score = 1.2 * x[:, 0] - x[:, 3] + x[:, 5] * x[:, 6]
    y = (score + 0.3 * torch.randn(n, generator=g) > 0).long()
    return x, y


class ChurnNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(15, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x):
        return self.layers(x)


def main(cfg):
    torch.manual_seed(0)
    x, y = customers()
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg["batch_size"], shuffle=True)
    model = ChurnNet(cfg["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(cfg["epochs"]):
        total, hits = 0.0, 0
        for xb, yb in loader:
            logits = model(xb)
            loss = loss_fn(logits, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (logits.argmax(1) == yb).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / len(x):.3f}")


if __name__ == "__main__":
    main(CONFIG)
