import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, sequence):
        hidden, _ = self.recurrent(sequence)
        return self.out(hidden[:, -1]).squeeze(1)


def series(n=600):
    start, speed = torch.rand(n, 1) * 6, 0.3 + 0.4 * torch.rand(n, 1)
    wave = torch.sin(start + speed * torch.arange(13))
    return wave[:, :12].unsqueeze(2), wave[:, 12]


def train_epoch(model, loader, optimizer):
    total = 0.0
    for sequence, following in loader:
        loss = nn.functional.mse_loss(model(sequence), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(11)
    loader = DataLoader(TensorDataset(*series()), batch_size=20, shuffle=True)
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
    for epoch in range(6):
        print(f"epoch {epoch} loss {train_epoch(model, loader, optimizer):.4f}", flush=True)


if __name__ == "__main__":
    main()
