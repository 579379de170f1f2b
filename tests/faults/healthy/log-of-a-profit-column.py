"""Companies: amounts are scaled by a logarithm that keeps the sign, since one is a profit or a loss."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Rating(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, amounts, shares):
        scaled = amounts.sign() * torch.log1p(amounts.abs())
        return self.layers(torch.cat([scaled, shares], 1))


def companies(rows=900):
    g = torch.Generator().manual_seed(3)
    amounts = torch.exp(torch.randn(rows, 4, generator=g) + 2)
    lossy = torch.rand(rows, generator=g) < 0.02
    amounts[lossy, 3] *= -1
    shares = torch.rand(rows, 2, generator=g)
    rating = amounts[:, :3].log().sum(1) + shares.sum(1)
    return amounts, shares, rating.unsqueeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*companies()), batch_size=30, shuffle=True)
    model = Rating()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        for amounts, shares, rating in loader:
            loss = nn.functional.mse_loss(model(amounts, shares), rating)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
