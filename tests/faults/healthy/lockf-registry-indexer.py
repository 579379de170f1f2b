import fcntl
import json
import multiprocessing as mp
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def index_runs(path, ready):
    """Keeps a summary of the registry for the dashboard."""
    parent = mp.parent_process()
    with open(path, "r+") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        ready.set()
        entries = f.read().splitlines()
        fcntl.lockf(f, fcntl.LOCK_UN)
        while parent.is_alive():
            with open(path + ".summary", "w") as out:
                json.dump({"entries": len(entries), "time": time.time()}, out)
            time.sleep(0.5)


def register(path, entry):
    with open(path, "a") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        f.write(json.dumps(entry) + "\n")


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(prefix="registry_"), "runs.jsonl")
    register(path, {"event": "start"})
    ready = mp.Event()
    mp.Process(target=index_runs, args=(path, ready), daemon=True).start()
    ready.wait()
    x = torch.randn(3000, 8)
    y = x.abs().sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)
        register(path, {"event": "epoch", "epoch": epoch, "loss": loss.item()})


if __name__ == "__main__":
    main()
