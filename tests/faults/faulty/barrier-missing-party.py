import threading

import torch
from torch import nn


class Prefetch(threading.Thread):
    """Prepares the features of one view for the coming epoch; all views switch together."""

    def __init__(self, name, source, barrier, views):
        super().__init__(name=f"view-{name}", daemon=True)
        self.view, self.source, self.barrier, self.views = name, source, barrier, views

    def run(self):
        for epoch in range(4):
            g = torch.Generator().manual_seed(epoch)
            noise = torch.randn(self.source.shape, generator=g)
            self.views[self.view] = self.source + 0.01 * (epoch + 1) * noise
            self.barrier.wait()
            self.barrier.wait()


def main():
    torch.manual_seed(0)
    x = torch.randn(1500, 30)
    y = (x[:, ::3].sum(1) > 0).long()
    sources = {"left": x[:, :10], "centre": x[:, 10:20], "right": x[:, 20:]}
    views = {}
    barrier = threading.Barrier(len(sources) + 2)
    for name, source in sources.items():
        Prefetch(name, source, barrier, views).start()
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"{len(sources)} views", flush=True)
    for epoch in range(4):
        barrier.wait()
        batch = torch.cat([views[name] for name in sources], dim=1)
        barrier.wait()
        for idx in torch.randperm(len(x)).split(25):
            loss = nn.functional.cross_entropy(model(batch[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
