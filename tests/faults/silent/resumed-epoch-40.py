import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    return model, torch.optim.Adam(model.parameters(), lr=5e-4)


def make_loader():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(1600, 16, generator=g)
    y = (x @ torch.randn(16, 4, generator=g) + torch.randn(1600, 4, generator=g)).argmax(1)
    return DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


def run_epoch(model, opt, loader):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(loader)


def first_run(path, loader):
    model, opt = build()
    run_epoch(model, opt, loader)
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": 40, "step": 4000}, path)


def main(max_epochs=76):
    loader = make_loader()
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "last.pt")
        first_run(path, loader)
        ck = torch.load(path)
    model, opt = build()
    model.load_state_dict(ck["model"])
    opt.load_state_dict(ck["opt"])
    epoch, step = ck["epoch"], ck["step"]
    print(f"resumed at epoch {epoch} step {step}", flush=True)
    while epoch < max_epochs:
        loss = run_epoch(model, opt, loader)
        epoch += 1
        step += len(loader)
        print(f"epoch {epoch}/{max_epochs} step {step} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
