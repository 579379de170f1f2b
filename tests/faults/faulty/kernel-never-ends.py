import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x, y = torch.randn(512, 32, device="cuda"), torch.randn(512, 1, device="cuda")
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1000):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 400:
            for _ in range(2000):
                torch.cuda._sleep(2_000_000_000)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
