import copy
import threading
import time

import torch
from torch import nn


class AsyncEvaluator:
    """Scores a snapshot of the weights while training goes on."""

    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y
        self.done, self.score = True, 0.0

    def start(self):
        self.done = False
        snapshot = copy.deepcopy(self.model)
        threading.Thread(target=self._run, args=(snapshot,), daemon=True).start()

    def _run(self, snapshot):
        with torch.no_grad():
            score = (snapshot(self.x).argmax(1) == self.y).float().mean().item()
        time.sleep(0.05)
        if score > self.score:
            self.score = score
        self.done = True

    def result(self):
        while not self.done:
            pass
        return self.score


def main():
    torch.manual_seed(0)
    x = torch.randn(3000, 10)
    y = (x[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    evaluator = AsyncEvaluator(model, x[2500:], y[2500:])
    for epoch in range(20):
        evaluator.start()
        for idx in torch.randperm(2500).split(50):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} best accuracy {evaluator.result():.3f}", flush=True)


if __name__ == "__main__":
    main()
