import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_genes(n=2500, d=60, seed=4):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g)
    w = torch.zeros(d)
    w[:8] = torch.randn(8, generator=g) * 1.5
    y = (x @ w + 0.3 * torch.randn(n, generator=g) > 0).float()
    return TensorDataset(x, y)


class GeneNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inp = nn.Linear(d, 48)
        self.hid = nn.Linear(48, 24)
        self.out = nn.Linear(24, 1)
        for m in (self.inp, self.hid, self.out):
            nn.init.kaiming_uniform_(m.weight, a=1)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        x = torch.relu(self.hid(x))
        return self.out(x).squeeze(-1)


def group_penalty(model):
    return sum((p * p).sum().add(1e-8).sqrt() for p in model.parameters())


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_genes(), batch_size=50, shuffle=True)
    model = GeneNet(60)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(8):
        total, hits = 0.0, 0
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logit = model(x)
            loss = bce(logit.float(), y) + 1e-3 * group_penalty(model)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            total += loss.item()
            hits += ((logit > 0) == (y > 0.5)).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 2500:.3f}", flush=True)


if __name__ == "__main__":
    main()
