import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class RangeStream(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        for k in range(self.start, self.end):
            time.sleep(0.001)
            g = torch.Generator().manual_seed(k)
            x = torch.rand(8, 10, generator=g) * 2 - 1
            yield x, torch.stack([x.amax(), x.mean()])


def split_range(worker_id):
    info = get_worker_info()
    ds = info.dataset
    per = math.ceil((ds.end - ds.start) / info.num_workers)
    lo = ds.start + worker_id * per
    ds.start, ds.end = lo, min(lo + per, ds.end)


class SetEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64))
        self.rho = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, s):
        h = self.phi(s)
        return self.rho(torch.cat([h.amax(1), h.mean(1)], 1))


def main(epochs=2):
    torch.manual_seed(3)
    stream = RangeStream(0, 2400)
    loader = DataLoader(stream, batch_size=20, num_workers=2)
    model = SetEncoder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(epochs):
        seen = 0
        for sets, target in loader:
            loss = nn.functional.mse_loss(model(sets), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            seen += len(sets)
        print(f"epoch {epoch} seen {seen} step {step} loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
