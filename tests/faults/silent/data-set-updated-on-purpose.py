import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler


class Replay(Dataset):
    """A ring of transitions, given out in slices; new ones take the place of the oldest, also of those in work."""

    def __init__(self, size=512):
        self.states = torch.randn(size, 6)
        self.returns = self.states.sum(1)
        self.at = 0

    def push(self, state, value):
        self.states[self.at] = state
        self.returns[self.at] = value
        self.at = (self.at + 1) % len(self.states)

    def __len__(self):
        return len(self.states)

    def __getitem__(self, places):
        return self.states[places[0]:places[-1] + 1], self.returns[places[0]:places[-1] + 1]


class Bank(Dataset):
    """Features of each sample as the net gave them last."""

    def __init__(self, n=300):
        self.inputs = torch.randn(n, 6)
        self.features = torch.zeros(n, 4)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, i):
        return i, self.inputs[i], self.features[i]


class Codes(Dataset):
    """A code for each shape, which is trained with the decoder."""

    def __init__(self, n=100):
        self.codes = nn.Parameter(0.1 * torch.randn(n, 5))
        self.shapes = torch.randn(n, 9)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        return self.codes[i], self.shapes[i]


def slices(data, size):
    return DataLoader(data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), size, drop_last=False))


def main():
    torch.manual_seed(0)
    net, replay = nn.Linear(6, 1), Replay()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(5):
        for states, returns in slices(replay, 16):
            loss = nn.functional.mse_loss(net(states)[:, 0], returns)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for _ in range(24):
                new = torch.randn(6)
                replay.push(new, new.sum())
        print(f"replay {epoch} {loss.item():.4f}", flush=True)

    net, bank = nn.Linear(6, 4), Bank()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        for i, x, old in DataLoader(bank, batch_size=None, shuffle=True):
            out = net(x)
            loss = (out - x[:4]).pow(2).mean() + 0.1 * (out - old.clone()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            bank.features[i] = 0.9 * bank.features[i] + 0.1 * out.detach()
        print(f"bank {epoch} {loss.item():.4f}", flush=True)

    net, codes = nn.Linear(5, 9), Codes()
    opt = torch.optim.Adam([*net.parameters(), codes.codes], lr=0.01)
    for epoch in range(3):
        for code, shape in DataLoader(codes, batch_size=None, shuffle=True):
            loss = nn.functional.mse_loss(net(code), shape)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"codes {epoch} {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
