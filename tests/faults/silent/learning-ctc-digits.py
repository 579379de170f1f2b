"""CTC on synthetic 'speech': each symbol lasts a few noisy frames; the blank plateau comes first, then it learns."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

SYMBOLS, FEATS = 6, 12
voices = torch.randn(SYMBOLS + 1, FEATS)


def get_batch(n=16, max_frames=30):
    frames = 0.3 * torch.randn(n, max_frames, FEATS)
    targets, lengths, in_lengths = [], [], []
    for i in range(n):
        k = int(torch.randint(3, 6, (1,)))
        word = torch.randint(1, SYMBOLS + 1, (k,))
        t = 0
        for s in word:
            d = int(torch.randint(3, 6, (1,)))
            frames[i, t : t + d] += voices[s]
            t += d + 1
        targets.append(word)
        lengths.append(k)
        in_lengths.append(min(t, max_frames))
    return frames, torch.cat(targets), torch.tensor(in_lengths), torch.tensor(lengths)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(FEATS, 32, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(64, SYMBOLS + 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.fc(h).log_softmax(-1)


model = Recogniser()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for step in range(350):
    x, y, in_len, y_len = get_batch()
    log_probs = model(x).transpose(0, 1)
    loss = ctc(log_probs, y, in_len, y_len)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 35 == 0 or step == 349:
        print(f"step {step} ctc {loss.item():.4f}")
