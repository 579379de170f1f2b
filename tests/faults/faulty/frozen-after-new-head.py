import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(20, 48)
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.inner(x))))


def main():
    torch.manual_seed(3)
    y = torch.randint(0, 5, (1500,))
    x = torch.randn(5, 20)[y] + torch.randn(1500, 20)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = Tower()
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("norm")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(10):
        total = 0.0
        for a, b in loader:
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
