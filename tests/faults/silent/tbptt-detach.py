import torch
from torch import nn


class RNNLM(nn.Module):
    def __init__(self, vocab=30, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


def repackage(state):
    return tuple(s.detach() for s in state) if state is not None else None


def corpus(n=64000, vocab=30):
    g = torch.Generator().manual_seed(0)
    return torch.cumsum(torch.randint(1, 4, (n,), generator=g), 0) % vocab


def main(bptt=20, batch=16):
    torch.manual_seed(0)
    data = corpus()
    data = data[: len(data) // batch * batch].view(batch, -1)
    model = RNNLM()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        state, total, n = None, 0.0, 0
        for k in range(0, data.size(1) - bptt - 1, bptt):
            x, y = data[:, k:k + bptt], data[:, k + 1:k + bptt + 1]
            state = repackage(state)
            logits, state = model(x, state)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            total += loss.item()
            n += 1
        print(f"epoch {epoch} loss {total / n:.4f}", flush=True)


if __name__ == "__main__":
    main()
