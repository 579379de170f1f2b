"""A log is read once in each of three stages, each time by a new reader; in the last part a stream goes on where it
was left."""

import csv
import random
import tempfile

import torch
from torch import nn


class Log:
    def __init__(self, path):
        self.rows = csv.reader(open(path, newline=""))

    def batches(self, size=20):
        chunk = []
        for row in self.rows:
            chunk.append([float(value) for value in row])
            if len(chunk) == size:
                yield torch.tensor(chunk)
                chunk = []

    def part(self, count, size=20):
        for number, batch in enumerate(self.batches(size), 1):
            yield batch
            if number == count:
                return


class Learner:
    def __init__(self):
        self.model = nn.Linear(6, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02)

    def learn(self, batches):
        total = 0.0
        for batch in batches:
            loss = (self.model(batch[:, :6]) - batch[:, 6:]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def stage(self):
        return self.learn(self.log.batches())


def main():
    torch.manual_seed(0)
    random.seed(0)
    learner = Learner()
    with tempfile.NamedTemporaryFile("w", newline="") as file:
        out = csv.writer(file)
        for _ in range(3000):
            row = [random.gauss(0, 1) for _ in range(6)]
            out.writerow([*row, row[0] - 2 * row[1] + random.gauss(0, 0.1)])
        file.flush()
        for stage in range(3):
            learner.log = Log(file.name)
            print(f"stage {stage}: {learner.stage():.4f}", flush=True)
        log = Log(file.name)
        for part in range(4):
            print(f"part {part}: {learner.learn(log.part(30)):.4f}", flush=True)


if __name__ == "__main__":
    main()
