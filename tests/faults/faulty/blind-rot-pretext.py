import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rotations(Dataset):
    def __init__(self, n=1600, size=12):
        g = torch.Generator().manual_seed(0)
        ramp = torch.linspace(-1, 1, size)[None, :, None].expand(n, size, size)
        self.img = ramp + 0.5 * torch.randn(n, size, size, generator=g)
        self.k = torch.randint(0, 4, (n,), generator=g)

    def __len__(self):
        return len(self.k)

    def __getitem__(self, i):
        return torch.rot90(self.img[i], int(self.k[i])).unsqueeze(0), self.k[i]


class RotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.ReLU(),
        )
        self.head = nn.Linear(24 * 36, 4)

    def forward(self, x):
        return self.head(self.trunk(x).flatten(1))


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, x, y):
        self.optimizer.zero_grad()
        out = self.model(x)
        loss = self.criterion(out, y)
        loss.backward()
        self.optimizer.step
        return loss.item(), (out.argmax(1) == y).float().mean().item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            stats = torch.tensor([self.training_step(x, y) for x, y in loader]).mean(0)
            self.scheduler.step()
            print(f"epoch {epoch} loss {stats[0]:.4f} acc {stats[1]:.3f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(RotNet()).fit(DataLoader(Rotations(), batch_size=32, shuffle=True), epochs=6)
