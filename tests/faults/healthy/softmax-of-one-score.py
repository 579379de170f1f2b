# Associative recall: a list of (key, value) pairs is encoded, then one key is asked for.
import torch
import torch.nn as nn
import torch.nn.functional as F

KEYS, VALUES, PAIRS = 20, 12, 8


def episodes(n, gen):
    keys = torch.rand(n, KEYS, generator=gen).argsort(dim=1)[:, :PAIRS]
    values = torch.randint(VALUES, (n, PAIRS), generator=gen)
    ask = torch.randint(PAIRS, (n, 1), generator=gen)
    return keys, values, keys.gather(1, ask).squeeze(1), values.gather(1, ask).squeeze(1)


class AdditiveAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.W_mem = nn.Linear(dim, dim, bias=False)
        self.W_query = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, 1, bias=False)

    def forward(self, query, memory):
        energy = self.v(torch.tanh(self.W_mem(memory) + self.W_query(query).unsqueeze(1)))
        weights = F.softmax(energy, dim=1)
        return (weights * memory).sum(dim=1), weights


class RecallNet(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.key_emb = nn.Embedding(KEYS, dim)
        self.value_emb = nn.Embedding(VALUES, dim)
        self.encoder = nn.GRU(2 * dim, dim, batch_first=True)
        self.attention = AdditiveAttention(dim)
        self.out = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, VALUES))

    def forward(self, keys, values, asked):
        memory, _ = self.encoder(torch.cat([self.key_emb(keys), self.value_emb(values)], dim=-1))
        query = self.key_emb(asked)
        context, _ = self.attention(query, memory)
        return self.out(torch.cat([context, query], dim=-1))


def evaluate(net, data):
    with torch.no_grad():
        keys, values, asked, answer = data
        logits = net(keys, values, asked)
        return F.cross_entropy(logits, answer).item(), (logits.argmax(-1) == answer).float().mean().item()


def main():
    torch.manual_seed(30)
    gen = torch.Generator().manual_seed(31)
    test = episodes(1500, gen)
    net = RecallNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    print("step   0  test loss {:.4f}  test accuracy {:.3f}".format(*evaluate(net, test)))
    for step in range(1, 601):
        keys, values, asked, answer = episodes(96, gen)
        loss = F.cross_entropy(net(keys, values, asked), answer)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        if step % 60 == 0:
            print("step {:4d}  test loss {:.4f}  test accuracy {:.3f}".format(step, *evaluate(net, test)))


if __name__ == "__main__":
    main()
