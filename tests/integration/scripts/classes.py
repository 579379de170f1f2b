"""Classes from noisy measurements, with a hand-written loss: --eps 0 takes the log of a probability that reaches 0."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Measurements(Dataset):
    def __init__(self, n=2048):
        g = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 3, (n,), generator=g)
        self.inputs = torch.randn(n, 12, generator=g) + 2 * nn.functional.one_hot(self.labels, 12)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        time.sleep(0.0005)
        return self.inputs[index] * (60 if index % 100 == 7 else 1), self.labels[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--eps", type=float, default=1e-8)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(Measurements(), batch_size=32, shuffle=True, num_workers=2)
    for epoch in range(args.epochs):
        for inputs, labels in loader:
            share = torch.softmax(model(inputs), dim=1)
            loss = -torch.log(share + args.eps)[range(len(labels)), labels].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
