"""Writes packages/parallel/golden/ddp-buffers.json: 12 steps of the convolutional network of ddp.py by DistributedDataParallel over gloo whose buffers are
averaged by a hook, before or after each forward pass. The state of each rank.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/ddp_buffers.py
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel.distributed import _BufferCommHookLocation

from ddp import cnn, numbers, plain, target

STEPS = 12
LOCATIONS = {"preForward": _BufferCommHookLocation.PRE_FORWARD, "postForward": _BufferCommHookLocation.POST_FORWARD}


def average(size, buffers):
    for name, buffer in buffers.items():
        if name.endswith("num_batches_tracked"):
            continue
        # Its batch norm saves running statistics for backward, so after a forward they may not be seen to change.
        buffer.data.mul_(1 / size)
        dist.all_reduce(buffer.data)


def train(rank, size, start, location):
    module = cnn()
    module.load_state_dict(start, strict=False)
    model = DistributedDataParallel(module)
    model._register_buffer_comm_hook(size, average, LOCATIONS[location])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(numbers((5, 1, 8, 8), rank, step)), target(rank, step)).backward()
        optimizer.step()
    return {k: plain(v) for k, v in module.state_dict().items() if v.is_floating_point()}


def main(rank, size, start, rendezvous, answers):
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    for location in LOCATIONS:
        states = [None] * size
        dist.all_gather_object(states, train(rank, size, start, location))
        if rank == 0:
            answers.append({"size": size, "location": location, "states": states})


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "parallel", "golden")
    with open(os.path.join(folder, "ddp.json")) as file:
        begun = json.load(file)["start"]["cnn"]
    start = {k: torch.tensor(v["values"], dtype=torch.float64).reshape(v["shape"]) for k, v in begun.items()}
    cases = []
    for size in (2, 3):
        with tempfile.TemporaryDirectory() as meeting, mp.Manager() as manager:
            answers = manager.list()
            mp.spawn(main, (size, start, os.path.join(meeting, "meet"), answers), nprocs=size)
            cases += list(answers)
    head = {"by": "scripts/golden/ddp_buffers.py", "torch": torch.__version__}
    with open(os.path.join(folder, "ddp-buffers.json"), "w") as file:
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        file.write(f'{json.dumps(head, separators=(",", ":"))[:-1]},"cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases")
