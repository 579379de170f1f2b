"""Sequence tagging with variable lengths: pack_padded_sequence, a padding_idx embedding and ignored pad tags."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

VOCAB, TAGS, PAD = 60, 5, 0
base_tag = torch.randint(0, TAGS, (VOCAB,))


def make_sentence():
    words = torch.randint(1, VOCAB, (int(torch.randint(4, 20, (1,))),))
    previous = torch.cat([torch.zeros(1, dtype=torch.long), words[:-1]])
    tags = torch.where(previous % 4 == 0, (base_tag[words] + 1) % TAGS, base_tag[words])
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24, padding_idx=PAD)
        self.lstm = nn.LSTM(24, 32, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(64, TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.emb(words), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.fc(h)


sentences = [make_sentence() for _ in range(800)]
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(12):
    total, batches = 0.0, torch.randperm(len(sentences)).split(32)
    for idx in batches:
        chosen = [sentences[i] for i in idx]
        words = pad_sequence([w for w, _ in chosen], batch_first=True, padding_value=PAD)
        tags = pad_sequence([t for _, t in chosen], batch_first=True, padding_value=-100)
        lengths = torch.tensor([len(w) for w, _ in chosen])
        logits = model(words, lengths)
        loss = F.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(batches):.4f}")
