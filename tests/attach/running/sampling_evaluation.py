"""After a little training, scores a character model by sampling from it token by token."""

import torch
from torch import nn


class CharLM(nn.Module):
    def __init__(self, vocab=64, dim=96, layers=3, context=128):
        super().__init__()
        self.context = context
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(context, dim)
        layer = nn.TransformerEncoderLayer(dim, 6, 4 * dim, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx):
        length = idx.shape[1]
        x = self.embed(idx) + self.pos(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.blocks(x, mask=mask, is_causal=True))


@torch.inference_mode()
def generate(model, prompt, new_tokens):
    idx = prompt
    for _ in range(new_tokens):
        logits = model(idx[:, -model.context :])[:, -1]
        idx = torch.cat([idx, torch.multinomial(logits.softmax(-1), 1)], 1)
    return idx[:, prompt.shape[1] :]


def train(model, optimizer, data, steps):
    model.train()
    for _ in range(steps):
        start = torch.randint(0, len(data) - 65, (4,)).tolist()
        chunk = torch.stack([data[s : s + 65] for s in start])
        loss = nn.functional.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = torch.randint(0, 64, (10_000,)).cumsum(0) % 64
    model = CharLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(10):
        print(f"epoch {epoch} loss {train(model, optimizer, data, 3):.3f}", flush=True)
        model.eval()
        scores = []
        print("READY", flush=True)
        for i in range(20_000):
            sample = generate(model, data[None, i % 5000 : i % 5000 + 8], new_tokens=200)
            scores.append(sample.float().diff().abs().mean().item())
            if i % 10 == 0:
                print(f"  sample {i} roughness {sum(scores) / len(scores):.2f}", flush=True)


if __name__ == "__main__":
    main()
