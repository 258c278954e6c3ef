"""Writes packages/parallel/golden/power-sgd.json: DistributedDataParallel over gloo with the PowerSGD hook, in float64. After some steps the weights and the state of the
hook are written down (what was lost, by rank; the last Qs), and the weights and losses after some more. First Qs are random numbers of PyTorch's own, so a
comparison begins at that state. Inputs are a formula of rank and step (`numbers` of ddp.py).
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/power_sgd.py
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from ddp import number, numbers, plain, target

BEFORE = 6
BEHIND = 8


def net():
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)).double()


def by_parameter(module, state, order):
    """The one bucket's memory, by the numbers of parameters: errors in the order of the bucket, Qs in that of their shapes."""
    parameters = list(module.parameters())
    place = lambda p: next(i for i, each in enumerate(parameters) if each is p)
    errors, at = {}, 0
    for p in order:
        errors[place(p)] = plain(state.error_dict[0][at : at + p.numel()].reshape(p.shape))
        at += p.numel()
    rank, rate = state.matrix_approximation_rank, state.min_compression_rate
    shapes = {}
    for p in order:
        if p.dim() == 2 and (p.shape[0] + p.shape[1]) * min(*p.shape, rank) * rate < p.numel():
            shapes.setdefault(p.shape, []).append(p)
    qs, at = {}, 0
    for p in (p for group in shapes.values() for p in group):
        size = [p.shape[1], min(*p.shape, rank)]
        qs[place(p)] = plain(state.q_memory_dict[0][at : at + size[0] * size[1]].reshape(size))
        at += size[0] * size[1]
    return errors, qs


def train(rank, size, matrix_rank):
    torch.manual_seed(13)
    module = net()
    model = DistributedDataParallel(module)
    state = PowerSGDState(None, matrix_approximation_rank=matrix_rank, start_powerSGD_iter=2, min_compression_rate=1)
    order = []

    def hook(state, bucket):
        order[:] = bucket.parameters()
        assert bucket.is_last() and bucket.index() == 0, "one bucket"
        return powerSGD_hook(state, bucket)

    model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

    def step(i):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(numbers((5, 12), rank, i)), target(rank, i))
        loss.backward()
        optimizer.step()
        return number(loss.item())

    for i in range(BEFORE):
        step(i)
    weights = {k: plain(v) for k, v in module.state_dict().items()}
    errors, qs = by_parameter(module, state, order)
    losses = [step(BEFORE + i) for i in range(BEHIND)]
    return {"iteration": BEFORE, "start": weights, "errors": errors, "qs": qs, "losses": losses, "state": {k: plain(v) for k, v in module.state_dict().items()}}


def main(rank, size, matrix_rank, rendezvous, answers):
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    ranks = [None] * size
    dist.all_gather_object(ranks, train(rank, size, matrix_rank))
    if rank == 0:
        shared = {k: ranks[0][k] for k in ("iteration", "start", "qs", "state")}
        answers.append({"size": size, "matrixRank": matrix_rank, **shared, **{k: [r[k] for r in ranks] for k in ("errors", "losses")}})


if __name__ == "__main__":
    cases = []
    # With more than two columns PyTorch makes them orthonormal by linalg.qr.
    for size, matrix_rank in ((2, 1), (3, 2), (2, 4)):
        with tempfile.TemporaryDirectory() as meeting, mp.Manager() as manager:
            answers = manager.list()
            mp.spawn(main, (size, matrix_rank, os.path.join(meeting, "meet"), answers), nprocs=size)
            cases += list(answers)
    head = {"by": "scripts/golden/power_sgd.py", "torch": torch.__version__}
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "packages", "parallel", "golden", "power-sgd.json"), "w") as file:
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        file.write(f'{json.dumps(head, separators=(",", ":"))[:-1]},"cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases")
