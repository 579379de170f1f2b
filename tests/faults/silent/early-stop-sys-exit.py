import sys
import tempfile
from pathlib import Path

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x = torch.randn(3000, 20)
    y = (x[:, :4].sum(1) > 0).long()
    vx, vy = x[2500:], y[2500:]
    model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.005)
    out = Path(tempfile.mkdtemp()) / "last.pt"
    best, patience, epoch = 9.9, 0, 0
    try:
        while True:
            for start in range(0, 2500, 10):
                loss = nn.functional.cross_entropy(model(x[start:start + 10]), y[start:start + 10])
                opt.zero_grad()
                loss.backward()
                opt.step()
            with torch.no_grad():
                val = nn.functional.cross_entropy(model(vx), vy).item()
            print(f"epoch {epoch} val {val:.4f}", flush=True)
            patience = patience + 1 if val > best - 2e-3 else 0
            best = min(best, val)
            epoch += 1
            if patience >= 2 or epoch >= 40:
                print("early stop", flush=True)
                sys.exit(0)
    finally:
        torch.save(model.state_dict(), out)
        size = out.stat().st_size
        out.unlink()
        out.parent.rmdir()
        print(f"saved {size > 0}", flush=True)


if __name__ == "__main__":
    main()
