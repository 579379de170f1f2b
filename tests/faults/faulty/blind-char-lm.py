import torch
from torch import nn
import torch.nn.functional as F

TEXT = ("the quick brown fox jumps over the lazy dog and then the dog sleeps under the old tree "
        "while the fox runs back to the river to drink some water before the night comes ") * 30
CHARS = sorted(set(TEXT))
STOI = {c: i for i, c in enumerate(CHARS)}


def get_batch(data, batch, block):
    ix = torch.randint(len(data) - block - 1, (batch,))
    x = torch.stack([data[i:i + block] for i in ix])
    y = torch.stack([data[i + 1:i + block + 1] for i in ix])
    return x, y


class CharTransformer(nn.Module):
    def __init__(self, vocab, block=32, dim=64):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(block, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(dim, vocab)

    def forward(self, x):
        t = x.shape[1]
        mask = torch.triu(torch.full((t, t), float("-inf")), 1)
        h = self.tok(x) + self.pos[:t]
        return self.head(self.enc(h, mask=mask))


def main():
    torch.manual_seed(0)
    data = torch.tensor([STOI[c] for c in TEXT])
    model = CharTransformer(len(CHARS))
    opt = torch.optim.AdamW(model.parameters(), lr=0.1)
    for it in range(300):
        x, y = get_batch(data, 16, 32)
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 20 == 0:
            print(f"iter {it} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
