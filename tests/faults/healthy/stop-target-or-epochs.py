import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, dim=48, code=6):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, code))
        self.decode = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, dim))

    def forward(self, x):
        return self.decode(self.encode(x))


def make_data(n=3000):
    g = torch.Generator().manual_seed(5)
    z = torch.randn(n, 6, generator=g)
    mix = torch.randn(6, 48, generator=g) / 6 ** 0.5
    return z @ mix + 0.3 * torch.randn(n, 48, generator=g)


def run_epoch(model, data, optimizer, batch_size=32):
    order = torch.randperm(len(data))
    total = 0.0
    for k in range(0, len(data), batch_size):
        batch = data[order[k:k + batch_size]]
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(data)


def fit(model, data, target_loss=0.02, max_epochs=40, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    epoch, loss = 0, float("inf")
    while loss > target_loss and epoch < max_epochs:
        loss = run_epoch(model, data, optimizer)
        epoch += 1
        if epoch % 5 == 0:
            print(f"epoch {epoch:4d} reconstruction {loss:.4f}", flush=True)
    return epoch, loss


if __name__ == "__main__":
    torch.manual_seed(0)
    epochs, final = fit(Autoencoder(), make_data())
    print(f"stopped after {epochs} epochs, loss {final:.4f}", flush=True)
