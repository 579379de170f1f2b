import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Signals(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(24, generator=g)
        if i in (731, 1500):
            raise ValueError(f"sample {i}: bad checksum")
        return x, (x[:6].mean() > 0).long()


def train_epoch(model, opt, data):
    total, n = 0.0, 0
    for x, y in DataLoader(data, batch_size=40, num_workers=2):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    return total / n


def main():
    torch.manual_seed(0)
    data, bad = Signals(), set()
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    epoch = 0
    while epoch < 14:
        usable = Subset(data, [i for i in range(len(data)) if i not in bad])
        try:
            loss = train_epoch(model, opt, usable)
        except ValueError as e:
            bad.add(int(re.search(r"sample (\d+): bad checksum", str(e)).group(1)))
            print(f"epoch {epoch} restarted without {sorted(bad)}", flush=True)
            continue
        print(f"epoch {epoch} loss {loss:.4f}", flush=True)
        epoch += 1


if __name__ == "__main__":
    main()
