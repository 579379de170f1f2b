import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Transitions(Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(2)
        self.state = torch.randn(n, 6, generator=g)
        self.action = torch.rand(n, 2, generator=g) * 2 - 1
        s, a = self.state, self.action
        self.next = 0.9 * s + 0.3 * torch.sin(s.roll(1, 1)) + 0.4 * torch.cat([a, a * a, -a], 1)

    def __len__(self):
        return len(self.state)

    def __getitem__(self, i):
        return torch.cat([self.state[i], self.action[i]]), self.next[i]


class DynamicsModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.l1 = nn.Linear(8, width)
        self.l2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 6)
        self.reset()

    def reset(self):
        for layer in (self.l1, self.l2):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        h = torch.tanh(self.l1(x))
        h = torch.tanh(self.l2(h))
        return self.out(h)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Transitions(), batch_size=100, shuffle=True)
    model = DynamicsModel()
    optim = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=15)
    for epoch in range(15):
        total = 0.0
        for x, target in loader:
            loss = nn.functional.mse_loss(model(x), target)
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item()
        sched.step()
        print(f"epoch {epoch} one-step error {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
