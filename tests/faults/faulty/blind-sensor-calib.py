import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def sensor_log(n=1024, seed=0):
    g = torch.Generator().manual_seed(seed)
    raw = torch.randn(n, 12, generator=g)
    coeff = torch.randn(12, 3, generator=g)
    out = torch.tanh(raw @ coeff * 0.5) + 0.02 * torch.randn(n, 3, generator=g)
    return TensorDataset(raw, out)


class Calibrator(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(12, 32)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def evaluate(model, loader):
    with torch.no_grad():
        return sum(nn.functional.l1_loss(model(x), y).item() for x, y in loader) / len(loader)


def main():
    torch.manual_seed(0)
    data = sensor_log(1280)
    train = DataLoader(Subset(data, range(1024)), batch_size=256, shuffle=True)
    val = DataLoader(Subset(data, range(1024, 1280)), batch_size=256)
    model = Calibrator()
    opt = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
    for epoch in range(120):
        running = 0.0
        for x, y in train:
            loss = nn.functional.l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        if epoch % 10 == 0:
            print(f"epoch {epoch} train {running / len(train):.4f} val {evaluate(model, val):.4f}", flush=True)


if __name__ == "__main__":
    main()
