"""Next value of a noisy wave from the ones before it; the table of windows is shuffled before each epoch."""

import numpy as np
import torch
from torch import nn

PAST, BATCH = 24, 50


class Windows:
    def __init__(self, values):
        self.rows = np.stack([values[at : at + PAST + 1] for at in range(len(values) - PAST)])
        self.order = np.random.default_rng(4)

    def epoch(self):
        self.order.shuffle(self.rows)
        for at in range(0, len(self.rows) - BATCH + 1, BATCH):
            batch = torch.tensor(self.rows[at : at + BATCH])
            yield batch[:, :PAST], batch[:, PAST]


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    time = np.arange(1800)
    values = np.sin(time / 5) + 0.6 * np.sin(time / 13 + 1) + 0.15 * rng.standard_normal(len(time))
    values = values.astype(np.float32)
    train, later = Windows(values[:1300]), Windows(values[1300:])
    model = nn.Sequential(nn.Linear(PAST, 64), nn.SiLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    known = torch.tensor(later.rows)
    for epoch in range(40):
        for past, value in train.epoch():
            loss = nn.functional.mse_loss(model(past).squeeze(1), value)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            with torch.no_grad():
                error = nn.functional.mse_loss(model(known[:, :PAST]).squeeze(1), known[:, PAST])
            print(f"epoch {epoch} loss {loss.item():.4f} later {error.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
