import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEFAULTS = {"lr": 3e-3, "hidden": 32, "epochs": 4, "batch_size": 40}


def load_config(argv):
    """Defaults, then key=value arguments, then a JSON object piped into the script."""
    config = dict(DEFAULTS)
    for arg in argv:
        key, value = arg.split("=")
        config[key] = type(DEFAULTS[key])(value)
    if not sys.stdin.isatty():
        text = sys.stdin.read()
        config.update(json.loads(text) if text.strip() else {})
    return config


def main():
    torch.manual_seed(0)
    config = load_config(sys.argv[1:])
    print(f"config {json.dumps(config)}", flush=True)
    x = torch.randn(2000, 8)
    y = torch.relu(x).sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=config["batch_size"], shuffle=True)
    model = nn.Sequential(nn.Linear(8, config["hidden"]), nn.ReLU(), nn.Linear(config["hidden"], 1))
    opt = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
