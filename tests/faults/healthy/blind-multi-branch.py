import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patients(Dataset):
    def __init__(self, n=3000):
        g = torch.Generator().manual_seed(1)
        self.data = {
            "labs": torch.randn(n, 10, generator=g),
            "vitals": torch.randn(n, 6, generator=g),
            "notes": torch.randn(n, 20, generator=g),
        }
        risk = torch.sin(2 * self.data["labs"][:, 0]) + self.data["vitals"][:, 1].abs() - self.data["notes"][:, :3].prod(1)
        self.risk = (risk - risk.mean()) / risk.std()

    def __len__(self):
        return len(self.risk)

    def __getitem__(self, i):
        return {k: v[i] for k, v in self.data.items()}, self.risk[i]


class FusionModel(nn.Module):
    def __init__(self, sizes, dim=32):
        super().__init__()
        self.branches = nn.ModuleDict({k: nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, dim)) for k, d in sizes.items()})
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, batch):
        h = sum(self.branches[k](batch[k]) for k in sorted(batch))
        return self.head(torch.relu(self.norm(h))).squeeze(-1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Patients(), batch_size=50, shuffle=True)
    model = FusionModel({"labs": 10, "vitals": 6, "notes": 20})
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for batch, risk in loader:
            loss = nn.functional.mse_loss(model(batch), risk)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
