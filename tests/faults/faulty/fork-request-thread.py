import queue
import threading

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Resampler:
    """All resampling goes through one thread because the filter bank is not thread safe."""

    def __init__(self, taps=5):
        self.kernel = np.hanning(taps).astype("float32")

    def start(self):
        self.requests = queue.Queue()
        self.thread = threading.Thread(target=self._serve, name="resampler", daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            signal, reply = self.requests.get()
            reply.put(np.convolve(signal, self.kernel, mode="same"))

    def __call__(self, signal):
        reply = queue.Queue(1)
        self.requests.put((signal, reply))
        return reply.get()


class Waves(Dataset):
    def __init__(self, resampler, n=200):
        rng = np.random.default_rng(0)
        self.waves = rng.normal(size=(n, 64)).astype("float32").cumsum(axis=1)
        self.resampler = resampler

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        wave = torch.from_numpy(self.resampler(self.waves[i]))
        return wave[:-1], wave[-1:]


def main():
    torch.manual_seed(0)
    resampler = Resampler()
    resampler.start()
    valid = DataLoader(Waves(resampler, n=60), batch_size=20)
    train = DataLoader(Waves(resampler), batch_size=10, shuffle=True, num_workers=2)
    model = nn.Linear(63, 1)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    before = sum(nn.functional.mse_loss(model(x), y).item() for x, y in valid) / len(valid)
    print(f"before training mse {before:.3f}", flush=True)
    for epoch in range(3):
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
