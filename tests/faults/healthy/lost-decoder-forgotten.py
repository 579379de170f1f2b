import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 6))

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 24))

    def forward(self, code):
        return self.net(code)


def signals(n=1500):
    phase, speed = torch.rand(n, 1) * 6, torch.rand(n, 1) + 0.5
    return torch.sin(phase + speed * torch.arange(24) / 3)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(signals()), batch_size=50, shuffle=True)
    encoder, decoder = Encoder(), Decoder()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for epoch in range(10):
        total = 0.0
        for (x,) in loader:
            loss = nn.functional.mse_loss(decoder(encoder(x)), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} reconstruction {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
