import os
import signal
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def resumed(signum, frame):
    print("resumed by the scheduler", flush=True)


def yield_to_scheduler(model, folder, epoch):
    """Checkpoint, then stand by until the scheduler gives the slot back."""
    torch.save(model.state_dict(), os.path.join(folder, f"epoch{epoch}.pt"))
    signal.alarm(1)
    signal.pause()


def main():
    torch.manual_seed(0)
    signal.signal(signal.SIGALRM, resumed)
    folder = tempfile.mkdtemp(prefix="slot_")
    x = torch.randn(3000, 14)
    y = (x[:, :7].sum(1) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(4):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if epoch == 1:
            yield_to_scheduler(model, folder, epoch)


if __name__ == "__main__":
    main()
