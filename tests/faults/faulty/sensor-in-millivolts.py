"""Fault: two recordings are in millivolts, all the others in volts: each time they come the loss jumps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, count=600):
        g = torch.Generator().manual_seed(8)
        self.signal = torch.randn(count, 12, generator=g)
        self.load = self.signal @ torch.linspace(-0.5, 0.5, 12) + 0.1 * torch.randn(count, generator=g)
        self.signal[137] *= 1000
        self.signal[421] *= 1000

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, index):
        return self.signal[index], self.load[index]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Recordings(), batch_size=25, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(25):
        total = 0.0
        for signal, load in loader:
            loss = nn.functional.l1_loss(model(signal).squeeze(1), load)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
