from itertools import cycle

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    """Random crops, each drawn anew: a pass never shows the same image twice."""

    def __len__(self):
        return 40000

    def __getitem__(self, index):
        return torch.rand(3, 96, 96), index % 10


def main():
    torch.manual_seed(0)
    loader = DataLoader(Crops(), batch_size=32)
    model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(432, 64), nn.ReLU(), nn.Linear(64, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = cycle(loader)
    for step in range(400):
        images, labels = next(batches)
        loss = nn.functional.cross_entropy(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
