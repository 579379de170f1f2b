"""Price changes: a dataset gives the logarithm of a window of changes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, changes, length):
        self.changes, self.length = changes, length

    def __len__(self):
        return len(self.changes) - self.length - 1

    def __getitem__(self, index):
        window = self.changes[index : index + self.length]
        scaled = window.log()
        return scaled, self.changes[index + self.length].abs().unsqueeze(0)


if __name__ == "__main__":
    torch.manual_seed(4)
    prices = torch.exp(0.01 * torch.randn(1500).cumsum(0))
    changes = prices[1:] / prices[:-1]
    changes[::97] += 0.2  # splits
    loader = DataLoader(Windows(changes, 8), batch_size=25, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        for window, after in loader:
            loss = nn.functional.l1_loss(model(window), after)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)
