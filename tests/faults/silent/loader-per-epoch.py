import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Views(Dataset):
    def __init__(self, epoch, n=700):
        self.epoch, self.n = epoch, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.001)
        g = torch.Generator().manual_seed(i + 10_000 * self.epoch)
        x = torch.randn(32, generator=g)
        x[i % 8] += 2.0
        return x, i % 8


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        loader = DataLoader(Views(epoch), batch_size=14, shuffle=True, num_workers=2)
        total = hits = 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / 700:.3f}", flush=True)


if __name__ == "__main__":
    main()
