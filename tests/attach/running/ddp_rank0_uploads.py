"""Rank 0 uploads its checkpoint for minutes without using a processor; rank 1 is in the barrier."""

import time

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        print("READY", flush=True)
        time.sleep(240)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
