"""Multi-resolution training of a compiled model with static shapes: a new size is a new compilation."""

import os
import tempfile
import time

import torch
import torch._dynamo
import torch._inductor.config
from torch import nn


class ConvMixer(nn.Module):
    def __init__(self, dim=32, depth=2, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 4, stride=4)
        self.depthwise = nn.ModuleList([nn.Conv2d(dim, dim, 5, padding=2, groups=dim) for _ in range(depth)])
        self.pointwise = nn.ModuleList([nn.Conv2d(dim, dim, 1) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.GroupNorm(4, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.stem(x)
        for dw, pw, norm in zip(self.depthwise, self.pointwise, self.norms, strict=True):
            x = x + torch.nn.functional.gelu(norm(dw(x)))
            x = torch.nn.functional.gelu(pw(x))
        return self.head(x.mean((2, 3)))


def main():
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 10_000
    torch._inductor.config.force_disable_caches = True  # sizes never come back, nothing to gain from a cache
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        model = ConvMixer()
        compiled = torch.compile(model, dynamic=False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        sizes = [(h, w) for h in range(32, 96, 4) for w in range(32, 96, 4)]
        print("READY", flush=True)
        for height, width in sizes:
            t0 = time.time()
            for _ in range(3):
                x = torch.randn(8, 3, height, width)
                y = torch.randint(0, 10, (8,))
                loss = nn.functional.cross_entropy(compiled(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"{height}x{width}: loss {loss.item():.3f} in {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
