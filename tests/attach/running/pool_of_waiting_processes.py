"""Pool.map over a slow service: nobody computes, everybody waits for an answer again and again."""

import multiprocessing as mp
import time

import torch


def annotate(number):
    for _ in range(200):
        time.sleep(0.3)
    return number


def main():
    torch.manual_seed(0)
    with mp.Pool(3) as pool:
        print("READY", flush=True)
        pool.map(annotate, range(30))


if __name__ == "__main__":
    main()
