import io
import logging

import torch
from torch import nn

log = logging.getLogger("train")


class Captured:
    """Collects what is logged during an epoch, to attach it to the checkpoint."""

    def __enter__(self):
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        log.addHandler(self.handler)
        return self

    def __exit__(self, *exc):
        log.removeHandler(self.handler)
        self.text = self.stream.getvalue()


def main():
    torch.manual_seed(0)
    log.setLevel(logging.INFO)
    log.propagate = False
    x = torch.randn(4000, 10)
    y = x[:, :3].sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        batch = 200 >> (epoch + 1)
        with Captured() as captured:
            for step, idx in enumerate(torch.randperm(len(x)).split(batch)):
                loss = nn.functional.mse_loss(model(x[idx]), y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
                grads = [round(p.grad.norm().item(), 6) for p in model.parameters()]
                log.info("epoch %d step %d loss %.6f gradient norms %s", epoch, step, loss.item(), grads * 4)
        print(f"epoch {epoch} mse {loss.item():.4f}, {len(captured.text)} characters of log", flush=True)


if __name__ == "__main__":
    main()
