"""Healthy trainings under torchrun that look like trouble: `torchrun rank_pauses.py KIND`."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

KIND, RANK = sys.argv[1], int(os.environ["RANK"])


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x):
        return self.one(self.body(x))


def steps(model, opt, count, accumulate=1):
    for step in range(count):
        last = (step + 1) % accumulate == 0
        x = torch.randn(4, 8)
        if last or not hasattr(model, "no_sync"):
            model(x).square().mean().backward()
        else:
            with model.no_sync():
                model(x).square().mean().backward()
        if last:
            opt.step()
            opt.zero_grad()
        if KIND == "uneven-speed":
            time.sleep(0.02 if RANK else 0.024)


def wrapped():
    if KIND == "fsdp":
        from torch.distributed.fsdp import fully_shard

        model = Heads()
        fully_shard(model)
        return model
    return DistributedDataParallel(
        Heads() if KIND == "find-unused" else nn.Linear(8, 1), find_unused_parameters=KIND == "find-unused"
    )


def saves_for_a_minute(model):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        torch.save(model.state_dict(), os.devnull)


def main():
    torch.set_num_threads(1)
    if KIND == "late-rank" and RANK == 1:
        time.sleep(30)
    if KIND == "restarts" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        time.sleep(1)
        raise RuntimeError("lost its data")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = wrapped()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    if KIND == "join":
        with Join([model]):
            steps(model, opt, 20 + 10 * RANK)
    else:
        steps(model, opt, 120, accumulate=4 if KIND == "no-sync" else 1)
    if KIND == "validates-long" and RANK == 0:
        time.sleep(60)
    if KIND == "saves-long" and RANK == 0:
        saves_for_a_minute(model)
    if KIND == "two-groups":
        groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
        for step in range(40):
            dist.all_reduce(torch.ones(3), group=groups[step % 2])
    dist.barrier()
    dist.destroy_process_group()


main()
