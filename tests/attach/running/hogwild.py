"""Hogwild: processes update one shared model without locks, the parent joins them."""

import torch
import torch.multiprocessing as mp
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 24, 5)
        self.fc1 = nn.Linear(24 * 12 * 12, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(nn.functional.max_pool2d(self.conv(x), 2))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def train(rank, model, epochs):
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(rank)
    images = torch.rand(2000, 1, 28, 28, generator=g)
    labels = torch.randint(0, 10, (2000,), generator=g)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for start in range(0, 2000, 64):
            loss = nn.functional.cross_entropy(model(images[start : start + 64]), labels[start : start + 64])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and epoch == 0 and start == 64:
                print("READY", flush=True)
        if epoch % 5 == 0:
            print(f"worker {rank} epoch {epoch} loss {loss.item():.4f}", flush=True)


def main():
    mp.set_start_method("spawn")
    torch.set_num_threads(1)
    model = Net()
    model.share_memory()
    processes = [mp.Process(target=train, args=(rank, model, 100_000), daemon=True) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()


if __name__ == "__main__":
    main()
