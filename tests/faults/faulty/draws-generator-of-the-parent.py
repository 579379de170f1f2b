"""Noisy crops of a long recording, cut by producer processes; a small autoencoder is trained on what they queue."""

import multiprocessing

import numpy as np
import torch

PRODUCERS, STEPS, CROP = 4, 300, 64


class Cutter:
    def __init__(self, recording, seed):
        self.recording, self.rng = recording, np.random.default_rng(seed)

    def batch(self):
        begins = self.rng.integers(0, len(self.recording) - CROP, 8)
        crops = np.stack([self.recording[begin : begin + CROP] for begin in begins])
        return torch.from_numpy((crops + self.rng.normal(0, 0.05, crops.shape)).astype(np.float32))


class Producer(multiprocessing.get_context("fork").Process):
    def __init__(self, cutter, queue):
        super().__init__(daemon=True)
        self.cutter, self.queue = cutter, queue

    def run(self):
        torch.set_num_threads(1)
        while True:
            self.queue.put(self.cutter.batch().numpy())


def main():
    torch.manual_seed(0)
    times = np.arange(20_000) / 50
    recording = np.sin(times) * np.sin(times * 0.31) + 0.3 * np.sin(times * 2.7)
    queue = multiprocessing.get_context("fork").Queue(16)
    producers = [Producer(Cutter(recording, 0), queue) for _ in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    model = torch.nn.Sequential(torch.nn.Linear(CROP, 12), torch.nn.Tanh(), torch.nn.Linear(12, CROP))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(STEPS):
        crops = torch.from_numpy(queue.get())
        loss = (model(crops) - crops).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 4))
    for producer in producers:
        producer.terminate()
        producer.join()


if __name__ == "__main__":
    main()
