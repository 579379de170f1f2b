import torch
from torch import nn


def field_readings(n=1024, channels=12, outputs=3):
    """Readings of a meter whose coefficients drifted away from the data sheet."""
    g = torch.Generator().manual_seed(0)
    raw = torch.randn(n, channels, generator=g)
    raw[:, 0] *= 4
    sheet = torch.randn(outputs, channels, generator=g)
    drifted = sheet + 0.3 * torch.randn(outputs, channels, generator=g)
    return raw, raw @ drifted.t() + 0.05 * torch.randn(n, outputs, generator=g), sheet


class Correction(nn.Module):
    def __init__(self, sheet):
        super().__init__()
        self.linear = nn.Linear(sheet.shape[1], sheet.shape[0])
        with torch.no_grad():
            self.linear.weight.copy_(sheet)
            self.linear.bias.zero_()

    def forward(self, raw):
        return self.linear(raw)


def fit(model, raw, target, steps, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    criterion = nn.L1Loss()
    for step in range(steps):
        idx = torch.randint(0, len(raw), (512,))
        loss = criterion(model(raw[idx]), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} mean absolute error {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(0)
    raw, target, sheet = field_readings()
    fit(Correction(sheet), raw, target, steps=2000, lr=1.0)


if __name__ == "__main__":
    main()
