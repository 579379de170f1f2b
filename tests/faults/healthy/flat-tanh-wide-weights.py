import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def start(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.15)
        nn.init.zeros_(module.bias)


def build():
    model = nn.Sequential(
        nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    return model.apply(start)


def main():
    torch.manual_seed(13)
    x = torch.randn(1500, 30)
    y = (x[:, :5].sum(1, keepdim=True) / 5**0.5).sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(8):
        total = 0.0
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
