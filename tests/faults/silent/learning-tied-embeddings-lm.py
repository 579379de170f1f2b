"""A language model with tied input and output embeddings on Markov text; floor at the chain's entropy."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

VOCAB, DIM = 40, 48
transitions = F.softmax(2.5 * torch.randn(VOCAB, VOCAB), dim=1)
text = [0]
for _ in range(12000):
    text.append(int(torch.multinomial(transitions[text[-1]], 1)))
text = torch.tensor(text)


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.out = nn.Linear(DIM, VOCAB)
        self.out.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, std=0.1)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens))
        return self.out(h)


model = LM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
T = 24
avg = None
for step in range(450):
    start = torch.randint(0, len(text) - T - 1, (32,))
    window = text[start.unsqueeze(1) + torch.arange(T + 1)]
    logits = model(window[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), window[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
    if step % 50 == 0 or step == 449:
        print(f"step {step} loss {avg:.4f} perplexity {2.718281828**avg:.2f}")
