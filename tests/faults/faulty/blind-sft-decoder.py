import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB, PROMPT, ANSWER = 40, 8, 8
IGNORE = -100


class CopyTask(Dataset):
    """Prompt of 8 tokens; the answer is the prompt shifted by one in the alphabet."""

    def __init__(self, n=2400):
        g = torch.Generator().manual_seed(0)
        prompt = torch.randint(1, VOCAB - 1, (n, PROMPT), generator=g)
        self.ids = torch.cat([prompt, prompt + 1], dim=1)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        return {"input_ids": ids, "prompt_len": PROMPT}


def collate(batch):
    ids = torch.stack([b["input_ids"] for b in batch])
    labels = ids.clone()
    for row, b in zip(labels, batch):
        row[: b["prompt_len"] + ANSWER] = IGNORE
    return ids, labels


class TinyDecoder(nn.Module):
    def __init__(self, dim=64, layers=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(PROMPT + ANSWER, dim)
        block = nn.TransformerEncoderLayer(dim, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        t = ids.shape[1]
        causal = nn.Transformer.generate_square_subsequent_mask(t)
        h = self.tok(ids) + self.pos(torch.arange(t))
        return self.lm_head(self.blocks(h, mask=causal, is_causal=True))


def main():
    torch.manual_seed(0)
    loader = DataLoader(CopyTask(), batch_size=48, shuffle=True, collate_fn=collate)
    model = TinyDecoder()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    step = 0
    for epoch in range(6):
        for ids, labels in loader:
            logits = model(ids)
            loss = F.cross_entropy(
                logits[:, :-1].reshape(-1, VOCAB), labels[:, 1:].reshape(-1), ignore_index=IGNORE
            )
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            step += 1


if __name__ == "__main__":
    main()
