import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, EOS, LENGTH = 24, 0, 12


class CharModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, VOCAB)

    def forward(self, tokens, state=None):
        out, state = self.rnn(self.emb(tokens), state)
        return self.head(out), state


@torch.no_grad()
def sample_text(model, start):
    model.eval()
    token, state, text = torch.tensor([[start]]), None, [start]
    while text[-1] != EOS:
        logits, state = model(token, state)
        token = logits[:, -1].argmax(-1, keepdim=True)
        text.append(token.item())
    model.train()
    return text


def main():
    torch.manual_seed(0)
    start = torch.randint(1, VOCAB, (600, 1))
    tokens = (start + torch.arange(LENGTH)) % (VOCAB - 1) + 1
    loader = DataLoader(TensorDataset(tokens), batch_size=50, shuffle=True)
    model = CharModel()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        for step, (batch,) in enumerate(loader):
            logits, _ = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        text = sample_text(model, start=3)
        print(f"epoch {epoch} sample {text}", flush=True)


if __name__ == "__main__":
    main()
