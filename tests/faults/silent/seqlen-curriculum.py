import torch
from torch import nn


def copy_task(g, batch, length, vocab=16):
    x = torch.randint(1, vocab, (batch, length), generator=g)
    return x, torch.roll(x, 1, dims=1)


class Net(nn.Module):
    def __init__(self, vocab=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, 32)
        self.rnn = nn.GRU(32, 64, batch_first=True)
        self.out = nn.Linear(64, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    steps = 500
    for step in range(steps):
        length = 8 + step * 72 // steps
        x, y = copy_task(g, 16, length)
        loss = nn.functional.cross_entropy(net(x)[:, 1:].flatten(0, 1), y[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} length {length} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
