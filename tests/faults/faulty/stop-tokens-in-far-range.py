import torch
from torch import nn

VOCAB, CONTEXT, BATCH = 40, 24, 12


def corpus(n=60_000):
    g = torch.Generator().manual_seed(5)
    steps = torch.randint(1, 4, (n,), generator=g)
    return torch.cumsum(steps, 0) % VOCAB


def get_batch(data, g):
    at = torch.randint(len(data) - CONTEXT - 1, (BATCH,), generator=g)
    x = torch.stack([data[i:i + CONTEXT] for i in at.tolist()])
    y = torch.stack([data[i + 1:i + CONTEXT + 1] for i in at.tolist()])
    return x, y


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 48)
        self.rnn = nn.GRU(48, 64, batch_first=True)
        self.head = nn.Linear(64, VOCAB)

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


def train(token_budget=100_000, log_every=100):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    data = corpus()
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = 0
    for step in range(100_000_000):
        x, y = get_batch(data, g)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        tokens += x.numel()
        if step % log_every == 0:
            print(f"step {step} tokens {tokens} loss {loss.item():.3f}", flush=True)
        if tokens == token_budget:
            break
    return model


train()
print("done", flush=True)
