import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def mean_neighbour_distance(z, k=5):
    d = torch.cdist(z, z)
    return d.topk(k + 1, largest=False).values[:, 1:].mean().item()


def main():
    torch.manual_seed(0)
    x = torch.randn(9000, 30) * torch.linspace(0.2, 2.0, 30)
    loader = DataLoader(TensorDataset(x), batch_size=100, shuffle=True)
    enc = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 8))
    dec = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 30))
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for (xb,) in loader:
            loss = nn.functional.mse_loss(dec(enc(xb)), xb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        n = 3000 + 700 * epoch
        with torch.no_grad():
            dist = mean_neighbour_distance(enc(x[:n]))
        print(f"epoch {epoch} mse {total / len(loader):.4f} neighbours of {n}: {dist:.3f}", flush=True)


if __name__ == "__main__":
    main()
