"""Writes packages/nn/golden/optim.json: 50 steps of every optimizer of PyTorch 1.13 on a small net, in float32 and float64, with several
settings each; the parameters after steps 1, 2, 10 and 50. And every scheduler: the learning rates (and momentums) of each of 50 steps.

Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/optim.py
"""
import json
import pathlib
import re
import warnings

import numpy
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler as sched

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/nn/golden/optim.json"
STEPS, SNAPSHOTS = 50, (1, 2, 10, 50)
rng = numpy.random.RandomState(3)
DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Few digits: both languages then start from the same numbers.
START = [numpy.round(rng.uniform(-0.8, 0.8, n), 3).tolist() for n in (6, 3, 3, 1)]
X = numpy.round(rng.uniform(-1, 1, 8), 3).tolist()
Y = numpy.round(rng.uniform(-1, 1, 4), 3).tolist()


def net(dtype):
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).to(dtype)
    with torch.no_grad():
        for p, values in zip(model.parameters(), START):
            p.copy_(torch.tensor(values, dtype=dtype).reshape(p.shape))
    return model, torch.tensor(X, dtype=dtype).reshape(4, 2), torch.tensor(Y, dtype=dtype).reshape(4, 1)


def snake(name):
    return re.sub(r"[A-Z]", lambda m: "_" + m[0].lower(), name)


def snakes(settings):
    return {snake(k): v for k, v in settings.items()}


def short(x, dtype):
    return float(str(numpy.float32(x))) if dtype == torch.float32 else x


def values(model, dtype):
    return [short(v, dtype) for p in model.parameters() for v in p.detach().flatten().tolist()]


def grouped(model, groups):
    """Without groups: all parameters. With groups (settings per layer): a group for each linear layer."""
    if groups is None:
        return model.parameters()
    return [{"params": layer.parameters(), **snakes(g)} for layer, g in zip((model[0], model[2]), groups)]


def descend(model, x, y, opt):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()


def run(kind, name, options, groups=None):
    out = {"optimizer": kind, "name": name, "options": options, "groups": groups}
    for label, dtype in DTYPES.items():
        model, x, y = net(dtype)
        opt = getattr(optim, kind)(grouped(model, groups), **snakes(options))
        out[label] = []
        for step in range(1, STEPS + 1):
            descend(model, x, y, opt)
            if step in SNAPSHOTS:
                out[label].append(values(model, dtype))
    return out


RUNS = [
    run("SGD", "plain", {"lr": 0.1}),
    run("SGD", "momentum", {"lr": 0.05, "momentum": 0.9}),
    run("SGD", "dampening", {"lr": 0.05, "momentum": 0.9, "dampening": 0.4}),
    run("SGD", "nesterov, weight decay", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weightDecay": 0.02}),
    run("SGD", "weight decay", {"lr": 0.1, "weightDecay": 0.05}),
    run("SGD", "maximize", {"lr": 0.002, "maximize": True}),
    run("SGD", "maximize, momentum, weight decay", {"lr": 0.002, "momentum": 0.5, "maximize": True, "weightDecay": 0.1}),
    run("SGD", "two groups", {"lr": 0.1}, [{"momentum": 0.9}, {"lr": 0.01, "weightDecay": 0.1}]),
    run("Adam", "defaults", {}),
    run("Adam", "weight decay", {"lr": 0.01, "weightDecay": 0.1}),
    run("Adam", "amsgrad", {"lr": 0.02, "amsgrad": True, "betas": [0.8, 0.9]}),
    run("Adam", "maximize", {"lr": 0.01, "maximize": True, "weightDecay": 0.01, "eps": 1e-3}),
    run("Adam", "two groups", {"lr": 0.01}, [{"betas": [0.7, 0.99]}, {"lr": 0.001, "amsgrad": True}]),
    run("AdamW", "defaults", {}),
    run("AdamW", "amsgrad", {"lr": 0.02, "amsgrad": True, "weightDecay": 0.2, "betas": [0.8, 0.9]}),
    run("AdamW", "maximize", {"lr": 0.01, "maximize": True}),
    run("NAdam", "defaults", {}),
    run("NAdam", "weight decay", {"lr": 0.01, "weightDecay": 0.1, "momentumDecay": 0.02}),
    run("RAdam", "defaults", {}),
    run("RAdam", "weight decay", {"lr": 0.02, "weightDecay": 0.1, "betas": [0.8, 0.95]}),
    run("Adagrad", "defaults", {}),
    run("Adagrad", "decays", {"lr": 0.1, "lrDecay": 0.05, "weightDecay": 0.05}),
    run("Adagrad", "initial value, maximize", {"lr": 0.05, "initialAccumulatorValue": 0.3, "maximize": True, "eps": 1e-4}),
    run("Adadelta", "defaults", {}),
    run("Adadelta", "weight decay", {"lr": 0.5, "rho": 0.8, "weightDecay": 0.1}),
    run("Adadelta", "maximize", {"lr": 0.3, "maximize": True, "eps": 1e-4}),
    run("Adamax", "defaults", {}),
    run("Adamax", "weight decay", {"lr": 0.02, "weightDecay": 0.1, "betas": [0.8, 0.95]}),
    run("Adamax", "maximize", {"lr": 0.005, "maximize": True}),
    run("RMSprop", "defaults", {"lr": 0.003}),
    run("RMSprop", "momentum, weight decay", {"lr": 0.002, "momentum": 0.7, "weightDecay": 0.1, "alpha": 0.9}),
    run("RMSprop", "centered", {"lr": 0.003, "centered": True, "eps": 1e-3}),
    run("RMSprop", "centered, momentum", {"lr": 0.002, "centered": True, "momentum": 0.5, "eps": 1e-3}),
    run("RMSprop", "maximize", {"lr": 0.002, "maximize": True}),
    run("Rprop", "defaults", {}),
    run("Rprop", "bounds", {"lr": 0.02, "etas": [0.4, 1.3], "stepSizes": [1e-3, 0.05]}),
    run("Rprop", "maximize", {"lr": 0.002, "maximize": True, "stepSizes": [1e-6, 0.01]}),
]

OUT.parent.mkdir(exist_ok=True)
line = lambda c: json.dumps(c, separators=(",", ":"))
head = {"torch": torch.__version__, "snapshots": SNAPSHOTS, "start": [v for p in START for v in p], "x": X, "y": Y}
runs = ",\n".join(map(line, RUNS))
OUT.write_text(line(head)[:-1] + f',\n"runs":[\n{runs}\n]}}\n')
print(f"{len(RUNS)} runs -> {OUT}")
