"""Wide transformer with gradient accumulation and activation checkpointing; a single backward takes many seconds."""

import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

ACCUMULATE = 4


class LanguageModel(nn.Module):
    def __init__(self, vocab=2000, dim=512, layers=9, length=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 8, 4 * dim, batch_first=True, norm_first=True, dropout=0.0)
            for _ in range(layers)
        )
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.embed(tokens) + self.pos
        for block in self.blocks:
            x = checkpoint(block, x, src_mask=mask, is_causal=True, use_reentrant=False)
        return self.head(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters", flush=True)
    print("READY", flush=True)
    for step in range(100_000):
        optimizer.zero_grad()
        start = time.time()
        total = 0.0
        for micro in range(ACCUMULATE):
            tokens = torch.randint(0, 2000, (3, 512))
            logits = model(tokens)
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            t_backward = time.time()
            (loss / ACCUMULATE).backward()
            total += loss.item() / ACCUMULATE
            print(f"  step {step} micro {micro} backward {time.time() - t_backward:.1f}s", flush=True)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {step} loss {total:.4f} in {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
