"""Four rates are compared on the same batches: 32 of them in a pass, by workers that are started for each pass."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RATES = (0.3, 0.1, 0.03, 0.01)


def main():
    torch.manual_seed(0)
    x = torch.rand(1024, 8) * 2 - 1
    y = torch.sin(3 * x[:, :1]) + 0.5 * x[:, 1:2] ** 2
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, num_workers=2)
    models = [nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)) for _ in RATES]
    optimizers = [torch.optim.SGD(m.parameters(), lr=rate) for m, rate in zip(models, RATES, strict=True)]
    for _ in range(40):
        totals = [0.0] * len(RATES)
        for inputs, targets in loader:
            for place, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                totals[place] += loss.item()
    print(" ".join(f"{total / len(loader):.4f}" for total in totals))


if __name__ == "__main__":
    main()
