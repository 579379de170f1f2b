import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(4000, 32)
    y = x.pow(2).sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    layers = [nn.Linear(32, 32), nn.Tanh()] * 12
    model = nn.Sequential(*layers, nn.Linear(32, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    total_loss, batches = 0.0, 0
    for epoch in range(12):
        for features, target in loader:
            loss = nn.functional.smooth_l1_loss(model(features), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total_loss += loss.detach()
            batches += 1
        print(f"epoch {epoch} mean loss so far {float(total_loss.detach()) / batches:.4f}", flush=True)


if __name__ == "__main__":
    main()
