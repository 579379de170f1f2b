import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ElmanCell(nn.Module):
    def __init__(self, inp, hidden):
        super().__init__()
        self.inp = nn.Linear(inp, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.rec.weight, gain=0.9)

    def forward(self, x, h):
        return torch.relu(self.inp(x) + self.rec(h))


class SequenceRegressor(nn.Module):
    def __init__(self, inp=2, hidden=48):
        super().__init__()
        self.hidden = hidden
        self.cell = ElmanCell(inp, hidden)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.readout(h).squeeze(1)


def adding_problem(n=2000, length=40):
    g = torch.Generator().manual_seed(0)
    values = torch.rand(n, length, generator=g)
    marks = torch.zeros(n, length)
    for i in range(n):
        late = length - 8 + torch.randperm(8, generator=g)[:2]
        marks[i, late] = 1.0
    return torch.stack([values, marks], dim=-1), (values * marks).sum(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*adding_problem()), batch_size=50, shuffle=True)
    model = SequenceRegressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.MSELoss()
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
