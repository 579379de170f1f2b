import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

cfg = {"max_iters": 900, "warmup": 50, "lr": 1e-3, "batch_size": 32}


class Patches(Dataset):
    def __init__(self, n=3840):
        g = torch.Generator().manual_seed(2)
        self.clean = torch.rand(n, 2, generator=g)
        self.g = torch.randn(n, 1, 14, 14, generator=g) * 0.2

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        r, c = self.clean[i]
        yy, xx = torch.meshgrid(torch.linspace(0, 1, 14), torch.linspace(0, 1, 14), indexing="ij")
        clean = torch.exp(-((yy - r) ** 2 + (xx - c) ** 2) / 0.05).unsqueeze(0)
        return clean + self.g[i], clean


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(16, 1, 3, padding=1))

    def forward(self, x):
        return x - self.body(x)


def train():
    torch.manual_seed(0)
    loader = DataLoader(Patches(), batch_size=cfg["batch_size"], shuffle=True)
    model = Denoiser()
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    it = 0
    epoch = 0
    while it < cfg["max_iters"]:
        epoch_loss = 0.0
        for noisy, clean in loader:
            for group in opt.param_groups:
                group["lr"] = cfg["lr"] * min(1.0, (it + 1) / cfg["warmup"])
            loss = nn.functional.mse_loss(model(noisy), clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
            epoch_loss += loss.item()
            it += 1
            if it >= cfg["max_iters"]:
                break
        epoch += 1
        print(f"epoch {epoch}: loss {epoch_loss / len(loader):.5f}", flush=True)
    print("training complete", flush=True)


if __name__ == "__main__":
    train()
