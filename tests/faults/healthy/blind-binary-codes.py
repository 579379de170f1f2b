import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def signals(n=3000, d=32):
    g = torch.Generator().manual_seed(3)
    codes = (torch.rand(n, 6, generator=g) < 0.5).float() * 2 - 1
    atoms = torch.randn(6, d, generator=g)
    return codes @ atoms + 0.1 * torch.randn(n, d, generator=g)


class BinaryAutoencoder(nn.Module):
    """Compresses a signal to a short code of +1/-1 bits."""

    def __init__(self, d=32, bits=10):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, bits))
        self.decoder = nn.Sequential(nn.Linear(bits, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x):
        h = torch.tanh(self.encoder(x))
        bits = h + (torch.sign(h) - h).detach()
        return self.decoder(bits)


def fit(model, loader, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        total = 0.0
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        sched.step()
        print(f"epoch {epoch} reconstruction {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    fit(BinaryAutoencoder(), DataLoader(TensorDataset(signals()), batch_size=50, shuffle=True), epochs=14)
