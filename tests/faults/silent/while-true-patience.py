import torch
from torch import nn


def sample(g, n=64):
    x = torch.rand(n, 2, generator=g) * 4 - 2
    y = torch.sin(2 * x[:, :1]) * torch.cos(x[:, 1:]) + 0.1 * torch.randn(n, 1, generator=g)
    return x, y


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    xv, yv = sample(torch.Generator().manual_seed(1), 1000)
    net = nn.Sequential(nn.Linear(2, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    best, wait, patience, step = float("inf"), 0, 12, 0
    while True:
        for _ in range(100):
            x, y = sample(g)
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
        with torch.no_grad():
            val = nn.functional.mse_loss(net(xv), yv).item()
        if val < best - 1e-4:
            best, wait = val, 0
        else:
            wait += 1
        if step % 500 == 0:
            print(f"step {step} val {val:.5f} wait {wait}", flush=True)
        if wait >= patience:
            break
    print(f"stopped at {step}, best {best:.5f}", flush=True)


if __name__ == "__main__":
    main()
