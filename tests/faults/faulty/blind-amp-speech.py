import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def frames(n=3000, classes=8, seed=1):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(classes, 40, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(proto[y] + 0.8 * torch.randn(n, 40, generator=g), y)


class AcousticModel(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(40, 128), nn.ReLU(),
            nn.Linear(128, 128), nn.ReLU(),
            nn.Linear(128, classes),
        )

    def forward(self, x):
        return self.net(x)


def train_step(model, batch, opt, scaler, max_norm):
    x, y = batch
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(opt)
    scaler.update()
    return loss.item()


def main():
    torch.manual_seed(0)
    loader = DataLoader(frames(), batch_size=50, shuffle=True)
    model = AcousticModel()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for epoch in range(10):
        losses = [train_step(model, b, opt, scaler, 1.0) for b in loader]
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
