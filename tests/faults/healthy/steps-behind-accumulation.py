import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 3


def main():
    torch.manual_seed(9)
    x = torch.randn(900, 10)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        total = 0.0
        optimizer.zero_grad()
        for number, (a, b) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(model(a), b)
            (loss / ACCUMULATE).backward()
            if number % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
