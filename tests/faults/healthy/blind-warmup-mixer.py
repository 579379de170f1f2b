import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.channel = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, tokens=9, patch=16, dim=32, classes=6):
        super().__init__()
        self.embed = nn.Linear(patch, dim)
        self.blocks = nn.Sequential(MixerBlock(tokens, dim), MixerBlock(tokens, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)).mean(1))


def patches(n=2400):
    g = torch.Generator().manual_seed(1)
    proto = torch.randn(6, 9, 16, generator=g)
    y = torch.randint(0, 6, (n,), generator=g)
    return proto[y] * 0.5 + torch.randn(n, 9, 16, generator=g), y


def main():
    torch.manual_seed(0)
    epochs = 10
    loader = DataLoader(TensorDataset(*patches()), batch_size=40, shuffle=True)
    model = Mixer()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup, total = 3, epochs * len(loader)

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (total - step) / (total - warmup))

    scheduler = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    for epoch in range(epochs):
        total_loss, hits = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            scheduler.step()
            total_loss += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total_loss / len(loader):.4f} acc {hits / 2400:.3f}", flush=True)


if __name__ == "__main__":
    main()
