import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ReverseDigits(Dataset):
    def __init__(self, n, length=12, vocab=12):
        g = torch.Generator().manual_seed(4)
        self.src = torch.randint(0, vocab, (n, length), generator=g)

    def __len__(self):
        return len(self.src)

    def __getitem__(self, i):
        return self.src[i], self.src[i].flip(0)


class TinyTransformer(nn.Module):
    def __init__(self, vocab=12, dim=48, length=12):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(length, dim) * 0.1)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.enc(self.tok(ids) + self.pos))


def train(args):
    torch.manual_seed(args.seed)
    loader = DataLoader(ReverseDigits(args.n), batch_size=32, shuffle=True)
    model = TinyTransformer()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    global_step = 0
    running = 0.0
    while True:
        for step, (src, tgt) in enumerate(loader):
            logits = model(src)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            global_step += 1
            if global_step % 100 == 0:
                print(f"step {global_step} loss {running / 100:.4f}", flush=True)
                running = 0.0
            if step >= args.max_steps:
                return model


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=3200)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--max_steps", type=int, default=900)
    ap.add_argument("--seed", type=int, default=0)
    model = train(ap.parse_args())
    print("params", sum(p.numel() for p in model.parameters()), flush=True)
