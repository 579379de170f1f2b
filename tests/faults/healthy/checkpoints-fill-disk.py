import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(net, opt, folder, epoch):
    path = os.path.join(folder, f"epoch_{epoch:03d}.pt")
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)
    return path


def main():
    torch.manual_seed(0)
    folder = os.environ.get("CHECKPOINTS", "checkpoints")
    os.makedirs(folder, exist_ok=True)
    x = torch.randn(64, 100)
    loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=16)
    net = nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    saved = []
    for epoch in range(12):
        for a, b in loader:
            loss = nn.functional.mse_loss(net(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
        saved.append(save(net, opt, folder, epoch))
        if len(saved) > 2:
            os.remove(saved.pop(0))
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
