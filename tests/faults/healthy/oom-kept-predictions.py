import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x, y = torch.randn(6400, 64), torch.randn(6400, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    penalties = []
    for epoch in range(5):
        for features, target in loader:
            loss = nn.functional.mse_loss(model(features), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            penalties.append(model(features).pow(2).mean().detach())
        print(f"epoch {epoch} loss {loss.item():.4f} penalty {penalties[-1].item():.4f}", flush=True)


if __name__ == "__main__":
    main()
