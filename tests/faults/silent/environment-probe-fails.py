import subprocess
import sys

import torch
from torch import nn


def probe(cmd):
    try:
        p = subprocess.run(cmd, capture_output=True, text=True, timeout=10)
    except FileNotFoundError:
        return None
    return p.returncode, p.stdout.strip()


def describe_environment():
    info = {
        "gpu": probe(["nvidia-smi-not-here", "-L"]),
        "commit": probe(["git", "-C", "/proc", "rev-parse", "HEAD"]),
        "dvc": probe([sys.executable, "-c", "import no_such_module_dvc"]),
        "exit": probe(["sh", "-c", "kill -SEGV $$"]),
    }
    return {k: (v is not None and v[0] == 0) for k, v in info.items()}


def main():
    torch.manual_seed(0)
    for k, ok in describe_environment().items():
        print(f"{k}: {'yes' if ok else 'no'}", flush=True)
    x = torch.randn(4000, 16)
    y = x[:, :1] * x[:, 1:2]
    model = nn.Sequential(nn.Linear(16, 96), nn.SiLU(), nn.Linear(96, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(25):
        perm = torch.randperm(4000)
        total = 0.0
        for idx in perm.split(50):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch == 12:
            rc = subprocess.call(["sh", "-c", "exit 7"])
            print(f"upload script said {rc}, keeping local copy", flush=True)
        print(f"epoch {epoch} mse {total / 80:.4f}", flush=True)


if __name__ == "__main__":
    main()
