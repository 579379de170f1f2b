import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(state, path):
    if os.path.exists(path):
        answer = input(f"{os.path.basename(path)} exists. Overwrite? [y/N] ")
        if answer.strip().lower() != "y":
            return False
    torch.save(state, path)
    return True


def main():
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="run_")
    x = torch.randn(3000, 16)
    y = x[:, :4].sum(1, keepdim=True).sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    best = float("inf")
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        mean = total / len(loader)
        print(f"epoch {epoch} mse {mean:.5f}", flush=True)
        if mean < best:
            best = mean
            save({"model": model.state_dict(), "epoch": epoch}, os.path.join(folder, "best.pt"))
    print(f"best {best:.5f}")


if __name__ == "__main__":
    main()
