"""Writes packages/parallel/golden/ddp.json: 50 steps of DistributedDataParallel over gloo, in float64, with 2 and 4 processes: an MLP and a small
convolutional network, SGD with momentum and Adam; and an MLP whose ranks have unevenly many inputs. Inputs are a formula of rank and step (`numbers`).
Also packages/parallel/golden/ddp-hooks.json: the MLP with gradients that are compressed to float16.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/ddp.py
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

STEPS = 50
SHOWN = 10
number = lambda v: float(f"{v:.15g}")
plain = lambda t: {"shape": list(t.shape), "values": [number(v) for v in t.detach().reshape(-1).tolist()]}


def numbers(shape, rank, step):
    """The same in ddp-golden.sim.test.ts."""
    n = int(torch.tensor(shape).prod())
    i = torch.arange(n, dtype=torch.int64)
    return ((((i * 7919 + rank * 1299709 + step * 104729) % 2003) - 1001).double() / 1001).reshape(shape)


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).double()


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 3),
    ).double()


MODELS = {"mlp": (mlp, (5, 6)), "cnn": (cnn, (5, 1, 8, 8))}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}
target = lambda rank, step: torch.tensor([(rank + step + i) % 3 for i in range(5)])


def train(rank, name, optimizer_name, start, counts, uneven, hook=None):
    make, shape = MODELS[name]
    module = make()
    module.load_state_dict(start[name], strict=False)
    model = DistributedDataParallel(module)
    if hook is not None:
        model.register_comm_hook(None, hook)
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    losses = []

    def run():
        for step in range(counts[rank]):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(numbers(shape, rank, step)), target(rank, step))
            loss.backward()
            optimizer.step()
            if step % SHOWN == SHOWN - 1:
                losses.append(number(loss.item()))

    if uneven:
        with model.join(divide_by_initial_world_size=uneven == "initial"):
            run()
    else:
        run()
    state = {k: plain(v) for k, v in module.state_dict().items() if v.is_floating_point()}
    return losses, state


def main(rank, size, start, rendezvous, answers, hooked):
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    torch.set_num_threads(1)
    losses, state = train(rank, "mlp", "sgd", start, [STEPS] * size, None, fp16_compress_hook)
    all_losses = [None] * size
    dist.all_gather_object(all_losses, losses)
    if rank == 0:
        hooked.append({"size": size, "losses": all_losses, "state": state})
    plans = [(name, optimizer, [STEPS] * size, None) for name in MODELS for optimizer in OPTIMIZERS]
    if size == 4:
        plans += [("mlp", "sgd", [20, 20, 35, 50], uneven) for uneven in ("initial", "effective")]
    for name, optimizer, counts, uneven in plans:
        losses, state = train(rank, name, optimizer, start, counts, uneven)
        all_losses = [None] * size
        dist.all_gather_object(all_losses, losses)
        if rank == 0:
            answers.append({"model": name, "optimizer": optimizer, "size": size, "counts": counts, "uneven": uneven, "losses": all_losses, "state": state})


if __name__ == "__main__":
    torch.manual_seed(11)
    value = lambda t: (torch.randn(t.shape, dtype=torch.float64) * 0.4).round(decimals=3)
    start = {name: {k: value(v) for k, v in make().named_parameters()} for name, (make, _) in MODELS.items()}
    cases = []
    hooked = []
    for size in (2, 4):
        with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
            answers, more = manager.list(), manager.list()
            mp.spawn(main, (size, start, os.path.join(folder, "meet"), answers, more), nprocs=size)
            cases += list(answers)
            hooked += list(more)
    head = {"by": "scripts/golden/ddp.py", "torch": torch.__version__, "start": {m: {k: plain(v) for k, v in s.items()} for m, s in start.items()}}
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "parallel", "golden")
    for name, rows in (("ddp.json", cases), ("ddp-hooks.json", hooked)):
        with open(os.path.join(folder, name), "w") as file:
            lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in rows)
            file.write(f'{json.dumps(head, separators=(",", ":"))[:-1]},"cases":[\n{lines}\n]}}\n')
    print(len(cases), "and", len(hooked), "cases")
