"""Fit a line of noisy readings until the loss is small enough; gradient steps by hand."""

import torch


class Calibration:
    def __init__(self, readings, truth):
        self.readings = readings
        self.truth = truth
        self.gain = torch.ones(readings.shape[1], requires_grad=True)
        self.offset = torch.zeros(1, requires_grad=True)

    def loss(self):
        return (self.readings @ self.gain + self.offset - self.truth).square().mean()

    def fit(self, lr=0.05, target=1e-3):
        loss = self.loss()
        rounds = 0
        while loss.item() > target:
            loss.backward()
            with torch.no_grad():
                for p in (self.gain, self.offset):
                    p -= lr * p.grad
                    p.grad = None
            loss = self.loss()
            rounds += 1
            if rounds % 1000 == 0:
                print(f"round {rounds}: loss {loss.item():.5f}", flush=True)
        return rounds


def main():
    g = torch.Generator().manual_seed(0)
    readings = torch.randn(500, 6, generator=g)
    truth = readings @ torch.tensor([0.4, -1.1, 2.0, 0.3, 0.0, 0.7]) + 0.5
    truth += 0.4 * torch.randn(500, generator=g)
    calibration = Calibration(readings, truth)
    print("rounds:", calibration.fit())
    print("gain:", calibration.gain.tolist())


if __name__ == "__main__":
    main()
