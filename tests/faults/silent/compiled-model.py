import tempfile

import torch
from torch import nn
from torch._inductor.utils import fresh_cache
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main():
    torch.manual_seed(0)
    x = torch.randn(1000, 16)
    y = x.pow(2).sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = torch.compile(nn.Sequential(*[Block(16) for _ in range(2)], nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as folder, fresh_cache(dir=folder):
        for epoch in range(4):
            for xb, yb in loader:
                loss = nn.functional.mse_loss(model(xb), yb)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} done", flush=True)


if __name__ == "__main__":
    main()
