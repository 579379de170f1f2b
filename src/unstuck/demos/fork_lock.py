"""Workers forked while a thread of the training process held a lock: in them, nobody is left to release it."""

import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Statistics:
    """Mean and spread of the inputs, brought up to date in the background."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.lock = threading.Lock()
        self.mean, self.std = inputs.mean(0), inputs.std(0)

    def refresh(self):
        with self.lock:
            for _ in range(200):
                mean, std = self.inputs.mean(0), self.inputs.std(0)
            self.mean, self.std = mean, std

    def normalize(self, row):
        with self.lock:
            return (row - self.mean) / self.std


class Rows(Dataset):
    def __init__(self, inputs, labels, statistics):
        self.inputs, self.labels, self.statistics = inputs, labels, statistics

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.statistics.normalize(self.inputs[index]), self.labels[index]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = torch.randn(20_000, 64) * 3 + 1
    labels = (inputs[:, 0] > inputs[:, 1]).long()
    statistics = Statistics(inputs)
    loader = DataLoader(
        Rows(inputs, labels, statistics), batch_size=64, shuffle=True, num_workers=2, multiprocessing_context="fork"
    )
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        for step, (row, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(row), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}", flush=True)
        threading.Thread(target=statistics.refresh, name="refresh-statistics", daemon=True).start()


if __name__ == "__main__":
    main()
