"""Writes packages/parallel/golden/sync-batch-norm.json: 30 steps of a small convolutional network with batch norms, in float64, SGD with momentum, over the
joined batch of ranks that have unevenly many rows. PyTorch's SyncBatchNorm takes tensors on a GPU only; by its documentation it is this. Inputs are
a formula of rank and step (`numbers` of ddp.py).
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/sync_batch_norm.py
"""
import json
import os

import torch
from torch import nn

from ddp import number, numbers, plain

STEPS = 30
SHOWN = 5
SHAPE = (1, 8, 8)


def net(momentum, affine):
    settings = {"momentum": momentum, "affine": affine}
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3, **settings), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4, eps=1e-3, **settings), nn.Tanh(), nn.Flatten(), nn.Linear(64, 6), nn.BatchNorm1d(6, **settings),
    ).double()


def train(rows, momentum, affine, start):
    model = net(momentum, affine)
    model.load_state_dict({k: v for k, v in start.items() if k in dict(model.named_parameters())}, strict=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x = torch.cat([numbers((count, *SHAPE), rank, step) for rank, count in enumerate(rows)])
        target = torch.cat([numbers((count, 6), rank, step + 1000) for rank, count in enumerate(rows)])
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        if step % SHOWN == SHOWN - 1:
            losses.append(number(loss.item()))
    model.eval()
    evaluated = model(numbers((3, *SHAPE), 9, 9))
    state = {k: plain(v) for k, v in model.state_dict().items()}
    return {"rows": rows, "momentum": momentum, "affine": affine, "losses": losses, "evaluated": plain(evaluated), "state": state}


if __name__ == "__main__":
    torch.manual_seed(12)
    start = {k: (torch.randn(v.shape, dtype=torch.float64) * 0.4).round(decimals=3) for k, v in net(0.1, True).named_parameters()}
    plans = [([5, 5], 0.1, True), ([2, 5, 1], None, True), ([3, 0, 4, 2], 0.3, False)]
    cases = [train(*plan, start) for plan in plans]
    head = {"by": "scripts/golden/sync_batch_norm.py", "torch": torch.__version__, "start": {k: plain(v) for k, v in start.items()}}
    path = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "parallel", "golden", "sync-batch-norm.json")
    with open(path, "w") as file:
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        file.write(f'{json.dumps(head, separators=(",", ":"))[:-1]},"cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases")
