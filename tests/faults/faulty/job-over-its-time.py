import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(400, 8)
    loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=20, shuffle=True)
    net = nn.Linear(8, 1)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2)
    for epoch in range(100):
        for a, b in loader:
            loss = nn.functional.mse_loss(net(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.02)
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
