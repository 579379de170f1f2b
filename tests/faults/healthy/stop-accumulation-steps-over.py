import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4
MAX_STEPS = 1001


def make_data(n=4000):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, 24, generator=g)
    y = x[:, :6].sin().sum(1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=g)
    return TensorDataset(x, y)


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_data(), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(24, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    step = 0
    done = False
    while not done:
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE
            loss.backward()
            if (i + 1) % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
                step += ACCUMULATE
                if step % 400 == 0:
                    print(f"step {step} loss {loss.item() * ACCUMULATE:.4f}", flush=True)
                if step >= MAX_STEPS:
                    done = True
                    break
    print(f"finished after {step} steps", flush=True)


if __name__ == "__main__":
    main()
