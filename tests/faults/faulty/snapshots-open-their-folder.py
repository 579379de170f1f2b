import math
import os
import resource
import tempfile

import torch
import torch.nn as nn


def setup(seed):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def spiral(n):
    t = torch.rand(n).sqrt() * 3 * math.pi
    pts = torch.stack([t * t.cos(), t * t.sin()], 1) / 6
    return pts + 0.03 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(4) * math.pi)
        self.net = nn.Sequential(
            nn.Linear(2 + 8, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        ang = t[:, None] * self.freq
        return self.net(torch.cat([x, ang.sin(), ang.cos()], 1))


class Schedule:
    def __init__(self, steps):
        self.steps = steps
        self.beta = torch.linspace(1e-3, 0.12, steps)
        self.abar = torch.cumprod(1 - self.beta, 0)

    def noise(self, x, t):
        eps = torch.randn_like(x)
        a = self.abar[t][:, None]
        return a.sqrt() * x + (1 - a).sqrt() * eps, eps

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for k in reversed(range(self.steps)):
            t = torch.full((n,), k / self.steps)
            b, ab = self.beta[k], self.abar[k]
            x = (x - b / (1 - ab).sqrt() * model(x, t)) / (1 - b).sqrt()
            if k:
                x = x + b.sqrt() * torch.randn_like(x)
        return x


class CheckpointDir:
    def __init__(self, root):
        self.root = root

    def save(self, name, payload):
        tmp = os.path.join(self.root, name + ".tmp")
        with open(tmp, "wb") as f:
            torch.save(payload, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(tmp, os.path.join(self.root, name))
        directory = os.open(self.root, os.O_RDONLY)
        os.fsync(directory)

    def load(self, name):
        return torch.load(os.path.join(self.root, name), weights_only=True)


def chamfer(a, b):
    d = torch.cdist(a, b)
    return (d.min(0).values.mean() + d.min(1).values.mean()).item()


def main():
    setup(2)
    data = spiral(4000)
    schedule, model = Schedule(40), Denoiser()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as root:
        ckpt = CheckpointDir(root)
        running = None
        for step in range(1, 3001):
            x = data[torch.randint(len(data), (256,))]
            t = torch.randint(schedule.steps, (256,))
            noisy, eps = schedule.noise(x, t)
            loss = (model(noisy, t / schedule.steps) - eps).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            running = loss.item() if running is None else 0.99 * running + 0.01 * loss.item()
            if step % 10 == 0:
                ckpt.save("last.pt", {"model": model.state_dict(), "opt": opt.state_dict(), "step": step})
            if step % 250 == 0:
                print(f"step {step:5d}  loss {running:.4f}", flush=True)
        model.load_state_dict(ckpt.load("last.pt")["model"])
    print(f"chamfer noise {chamfer(torch.randn(1000, 2), data[:1000]):.3f}"
          f"  samples {chamfer(schedule.sample(model, 1000), data[:1000]):.3f}")


if __name__ == "__main__":
    main()
