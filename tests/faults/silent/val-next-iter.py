import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 6, (n,), generator=g)
    t = torch.linspace(0, 6.28, 80)
    x = torch.sin((y + 1).unsqueeze(1) * t + 6 * torch.rand(n, 1, generator=g)) + torch.randn(n, 80, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make(3200, 0), batch_size=32, shuffle=True)
    val_loader = DataLoader(make(640, 1), batch_size=64)
    model = nn.Sequential(nn.Conv1d(1, 24, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(24, 48, 9, padding=4),
                          nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(192, 6))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(14):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                model.eval()
                with torch.no_grad():
                    xv, yv = next(iter(val_loader))
                    vl = nn.functional.cross_entropy(model(xv), yv).item()
                model.train()
                print(f"step {step} train {loss.item():.4f} val(one batch) {vl:.4f}", flush=True)


if __name__ == "__main__":
    main()
