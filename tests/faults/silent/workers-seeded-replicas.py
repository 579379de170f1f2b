import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Simulator(IterableDataset):
    """Synthetic pendulum rollouts, replicated in each worker with its own noise."""

    def __init__(self, rollouts, seed=0):
        self.rollouts = rollouts
        self.seed = seed

    def __iter__(self):
        info = get_worker_info()
        wid = info.id if info is not None else 0
        g = torch.Generator().manual_seed(self.seed + 7919 * wid)
        for k in range(self.rollouts):
            time.sleep(0.001)
            theta = 0.1 + 2.0 * (k % 50) / 50
            t = torch.arange(40) * 0.1
            clean = theta * torch.cos(t * (1 + 0.1 * theta))
            yield clean + 0.05 * torch.randn(40, generator=g), torch.tensor([theta - 1.0])


def main():
    torch.manual_seed(0)
    loader = DataLoader(Simulator(900), batch_size=20, num_workers=2)
    model = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    for epoch in range(9):
        total = steps = 0
        for traj, theta in loader:
            loss = nn.functional.mse_loss(model(traj), theta)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch} steps {steps} mse {total / steps:.5f}", flush=True)


if __name__ == "__main__":
    main()
