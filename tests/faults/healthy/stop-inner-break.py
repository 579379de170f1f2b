import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class MLPRegressor(nn.Module):
    def __init__(self, d_in, width=400):
        super().__init__()
        self.fc1 = nn.Linear(d_in, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x).squeeze(-1)


def friedman(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 12, generator=g)
    y = 10 * torch.sin(3.14 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = y + torch.randn(n, generator=g)
    return (x - 0.5) / 0.29, (y - 14.4) / 5.0


def main():
    torch.manual_seed(11)
    loader = DataLoader(TensorDataset(*friedman(4096, 0)), batch_size=64, shuffle=True)
    x_val, y_val = friedman(512, 1)
    model = MLPRegressor(12)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.05, 1 - s / 1500))

    max_steps = 1500
    step = 0
    while True:
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if step % 150 == 0:
                with torch.no_grad():
                    val = nn.functional.mse_loss(model(x_val), y_val).item()
                print(f"step {step} train {loss.item():.4f} val {val:.4f}", flush=True)
            if step >= max_steps:
                break
        if step >= max_steps:
            break
    print(f"finished at step {step}", flush=True)


if __name__ == "__main__":
    main()
