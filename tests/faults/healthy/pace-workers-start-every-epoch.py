import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Indexed(Dataset):
    """Reads its index when it is first asked for something: in every worker, whenever one is started."""

    def __init__(self):
        self.index = None

    def __len__(self):
        return 96

    def __getitem__(self, number):
        if self.index is None:
            time.sleep(0.6)
            self.index = list(range(96))
        generator = torch.Generator().manual_seed(self.index[number])
        x = torch.randn(64, generator=generator)
        return x, x[:4].sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Indexed(), batch_size=16, num_workers=2, persistent_workers=True)
    for epoch in range(12):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
