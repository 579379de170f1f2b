"""Next-note model of a long melody, in parallel lanes with a recurrent state that goes on from chunk to chunk."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
NOTES, LANES, CHUNK = 12, 16, 20
PHRASES = [[random.randrange(NOTES) for _ in range(random.randint(4, 9))] for _ in range(5)]


def melody(length):
    notes = []
    while len(notes) < length:
        notes += random.choice(PHRASES)
    return torch.tensor(notes[:length])


def in_lanes(stream):
    steps = len(stream) // LANES
    return stream[: steps * LANES].reshape(LANES, steps)  # one lane a row


class NoteModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(NOTES, 16)
        self.memory = nn.GRU(16, 48, batch_first=True)
        self.read = nn.Linear(48, NOTES)

    def forward(self, notes, state):
        hidden, state = self.memory(self.embed(notes), state)
        return self.read(hidden), state


lanes = in_lanes(melody(16_000))
model = NoteModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    state, total, count = None, 0.0, 0
    for start in range(0, lanes.shape[1] - CHUNK - 1, CHUNK):
        chunk, following = lanes[:, start : start + CHUNK], lanes[:, start + 1 : start + CHUNK + 1]
        logits, state = model(chunk, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, NOTES), following.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state, total, count = state.detach(), total + loss.item(), count + 1
    print(f"epoch {epoch + 1}: loss {total / count:.3f}", flush=True)
