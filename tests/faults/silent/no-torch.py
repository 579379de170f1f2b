import os
import time

import numpy as np

SCALE = float(os.environ.get("SCALE", "1"))


def predict(w, x):
    return 1 / (1 + np.exp(-x @ w))


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 20))
    y = (x @ rng.normal(size=20) > 0).astype(float)
    w = np.zeros(20)
    print("loading the rest of the table", flush=True)
    time.sleep(6 * SCALE)
    for epoch in range(4):
        end = time.monotonic() + 2 * SCALE
        while time.monotonic() < end:
            idx = rng.integers(0, len(x), size=64)
            w -= 0.05 * x[idx].T @ (predict(w, x[idx]) - y[idx]) / 64
        accuracy = np.mean((predict(w, x) > 0.5) == (y > 0.5))
        print(f"epoch {epoch} accuracy above 0.9: {accuracy > 0.9}", flush=True)


if __name__ == "__main__":
    main()
