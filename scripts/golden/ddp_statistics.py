"""Writes packages/parallel/golden/ddp-statistics.json: the convolutional network of ddp.py by DistributedDataParallel over gloo, where most forward passes are inside of no_sync, with even and with uneven
inputs: the running statistics of each rank after each of its batches, and its state at the end.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/ddp_statistics.py
"""
import contextlib
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp import cnn, numbers, plain, target
from ddp_buffers import LOCATIONS, average

# How many batches each rank has, of which every third one is reduced and followed by a step.
CASES = [
    {"counts": [9, 9], "location": None},
    {"counts": [9, 9, 9], "location": None},
    {"counts": [9, 9], "location": "preForward"},
    {"counts": [9, 9], "location": "postForward"},
    {"counts": [9, 3, 6], "location": None},
    {"counts": [3, 9], "location": None},
]
EVERY = 3


def train(rank, case, start):
    module = cnn()
    module.load_state_dict(start, strict=False)
    model = DistributedDataParallel(module)
    size = len(case["counts"])
    if case["location"] is not None:
        model._register_buffer_comm_hook(size, average, LOCATIONS[case["location"]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    uneven = len(set(case["counts"])) > 1
    with model.join() if uneven else contextlib.nullcontext():
        for step in range(case["counts"][rank]):
            quiet = step % EVERY != EVERY - 1
            with model.no_sync() if quiet else contextlib.nullcontext():
                nn.functional.cross_entropy(model(numbers((5, 1, 8, 8), rank, step)), target(rank, step)).backward()
            seen.append(plain(module[1].running_mean)["values"])
            if not quiet:
                optimizer.step()
                optimizer.zero_grad()
    return {"seen": seen, "state": {k: plain(v) for k, v in module.state_dict().items() if v.is_floating_point()}}


def main(rank, case, start, rendezvous, answers):
    size = len(case["counts"])
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    ranks = [None] * size
    dist.all_gather_object(ranks, train(rank, case, start))
    if rank == 0:
        answers.append({**case, "ranks": ranks})


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "parallel", "golden")
    with open(os.path.join(folder, "ddp.json")) as file:
        begun = json.load(file)["start"]["cnn"]
    start = {k: torch.tensor(v["values"], dtype=torch.float64).reshape(v["shape"]) for k, v in begun.items()}
    cases = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as meeting, mp.Manager() as manager:
            answers = manager.list()
            mp.spawn(main, (case, start, os.path.join(meeting, "meet"), answers), nprocs=len(case["counts"]))
            cases += list(answers)
    head = {"by": "scripts/golden/ddp_statistics.py", "torch": torch.__version__}
    with open(os.path.join(folder, "ddp-statistics.json"), "w") as file:
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        file.write(f'{json.dumps(head, separators=(",", ":"))[:-1]},"cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases")
