import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MAX_SAMPLES = 64_000
BATCH = 48
EVAL_EVERY = 9_600


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    teacher = torch.randn(32, 6, generator=torch.Generator().manual_seed(42))
    x = torch.randn(n, 32, generator=g)
    return x, (x @ teacher + 0.5 * torch.randn(n, 6, generator=g)).argmax(1)


def evaluate(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(7)
    train_set = TensorDataset(*make_split(6000, 0))
    xv, yv = make_split(1000, 1)
    loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 6))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    samples_seen, epoch, finished = 0, 0, False
    while not finished:
        epoch += 1
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            samples_seen += x.size(0)
            if samples_seen % EVAL_EVERY == 0:
                print(f"epoch {epoch} samples {samples_seen}/{MAX_SAMPLES} loss {loss.item():.4f} "
                      f"val {evaluate(model, xv, yv):.3f}", flush=True)
            if samples_seen >= MAX_SAMPLES:
                finished = True
                break
    print(f"final val accuracy {evaluate(model, xv, yv):.3f}", flush=True)


if __name__ == "__main__":
    main()
