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

# SequentialLR steps its members by an epoch, which warns.
warnings.simplefilter("ignore")
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

# Functions by name; the test has the same ones. They use nothing that two languages could round differently.
LAMBDAS = {"harmonic": lambda e: 1 / (1 + e / 4), "stairs": lambda e: 1 - 0.0625 * (e // 10), "shrink": lambda e: 0.96875, "scale": lambda x: 1 / x}
TORCH_NAMES = {"tMax": "T_max", "t0": "T_0", "tMult": "T_mult"}
METRICS = numpy.round(1 + numpy.cos(numpy.arange(STEPS) * 0.35) * 0.4 - numpy.minimum(numpy.arange(STEPS), 20) * 0.03, 3).tolist()


def make_scheduler(opt, kind, options):
    if kind == "ChainedScheduler":
        return sched.ChainedScheduler([make_scheduler(opt, k, o) for k, o in options["schedulers"]])
    if kind == "SequentialLR":
        return sched.SequentialLR(opt, [make_scheduler(opt, k, o) for k, o in options["schedulers"]], options["milestones"])
    look_up = lambda v: [look_up(x) for x in v] if isinstance(v, list) else LAMBDAS.get(v, v) if isinstance(v, str) else v
    return getattr(sched, kind)(opt, **{TORCH_NAMES.get(k, snake(k)): look_up(v) for k, v in options.items()})


def schedule(kind, name, options, optimizer="SGD"):
    """Learning rates (and momentums) of both groups: at first, then after each step. And the parameters at the end, in float64."""
    model, x, y = net(torch.float64)
    settings = {"lr": 0.1, "momentum": 0.5} if optimizer == "SGD" else {"lr": 0.1}
    opt = getattr(optim, optimizer)(grouped(model, [{}, {"lr": 0.04}]), **settings)
    scheduler = make_scheduler(opt, kind, options)
    rates, momentums = [], []

    def note():
        rates.append([float("%.15g" % g["lr"]) for g in opt.param_groups])
        momentums.append([float("%.15g" % (g["betas"][0] if "betas" in g else g["momentum"])) for g in opt.param_groups])

    note()
    for step in range(STEPS):
        descend(model, x, y, opt)
        scheduler.step(METRICS[step]) if kind == "ReduceLROnPlateau" else scheduler.step()
        note()
    moves = any(m != momentums[0] for m in momentums)
    out = {"scheduler": kind, "name": name, "options": options, "optimizer": optimizer, "settings": settings, "lr": rates}
    return {**out, "momentum": momentums if moves else None, "end": values(model, torch.float64)}


SCHEDULES = [
    schedule("LambdaLR", "one function", {"lrLambda": "harmonic"}),
    schedule("LambdaLR", "one per group", {"lrLambda": ["harmonic", "stairs"]}),
    schedule("MultiplicativeLR", "one function", {"lrLambda": "shrink"}),
    schedule("StepLR", "every 7", {"stepSize": 7, "gamma": 0.5}),
    schedule("StepLR", "defaults", {"stepSize": 20}),
    schedule("MultiStepLR", "one twice", {"milestones": [5, 20, 20, 33], "gamma": 0.6}),
    schedule("ConstantLR", "defaults", {}),
    schedule("ConstantLR", "longer", {"factor": 0.25, "totalIters": 12}),
    schedule("LinearLR", "defaults", {}),
    schedule("LinearLR", "down", {"startFactor": 0.9, "endFactor": 0.1, "totalIters": 30}),
    schedule("ExponentialLR", "0.95", {"gamma": 0.95}),
    schedule("PolynomialLR", "defaults", {}),
    schedule("PolynomialLR", "square", {"totalIters": 40, "power": 2}),
    schedule("CosineAnnealingLR", "one way", {"tMax": 50}),
    schedule("CosineAnnealingLR", "there and back", {"tMax": 8, "etaMin": 0.01}),
    schedule("CosineAnnealingWarmRestarts", "same length", {"t0": 9}),
    schedule("CosineAnnealingWarmRestarts", "longer and longer", {"t0": 5, "tMult": 2, "etaMin": 0.001}),
    schedule("OneCycleLR", "defaults", {"maxLr": 0.2, "totalSteps": 50}),
    schedule("OneCycleLR", "linear, three phases, per group", {"maxLr": [0.2, 0.1], "epochs": 10, "stepsPerEpoch": 5, "pctStart": 0.4,
             "annealStrategy": "linear", "threePhase": True, "divFactor": 10, "finalDivFactor": 100, "baseMomentum": 0.6, "maxMomentum": 0.7}),
    schedule("OneCycleLR", "betas", {"maxLr": 0.05, "totalSteps": 50}, "Adam"),
    schedule("OneCycleLR", "without momentum", {"maxLr": 0.05, "totalSteps": 60, "pctStart": 0.1, "cycleMomentum": False}),
    schedule("CyclicLR", "triangular", {"baseLr": 0.01, "maxLr": 0.1, "stepSizeUp": 6}),
    schedule("CyclicLR", "triangular2, per group", {"baseLr": [0.01, 0.02], "maxLr": [0.1, 0.05], "stepSizeUp": 5, "stepSizeDown": 9,
             "mode": "triangular2", "baseMomentum": 0.4, "maxMomentum": [0.5, 0.6]}),
    schedule("CyclicLR", "exp_range", {"baseLr": 0.01, "maxLr": 0.1, "stepSizeUp": 4, "mode": "exp_range", "gamma": 0.97, "cycleMomentum": False}),
    schedule("CyclicLR", "a function of its own", {"baseLr": 0.01, "maxLr": 0.1, "stepSizeUp": 4, "scaleFn": "scale", "cycleMomentum": False}, "Adam"),
    schedule("ReduceLROnPlateau", "patience", {"patience": 3, "factor": 0.5}),
    schedule("ReduceLROnPlateau", "max, absolute, cooldown, minima", {"mode": "max", "patience": 1, "factor": 0.3, "threshold": 0.05,
             "thresholdMode": "abs", "cooldown": 4, "minLr": [0.001, 0.01]}),
    schedule("SequentialLR", "warm-up, then decay", {"schedulers": [["LinearLR", {"startFactor": 0.1, "totalIters": 8}],
             ["ExponentialLR", {"gamma": 0.9}]], "milestones": [8]}),
    schedule("SequentialLR", "three", {"schedulers": [["ConstantLR", {"factor": 0.5, "totalIters": 4}], ["CosineAnnealingLR", {"tMax": 10}],
             ["CosineAnnealingWarmRestarts", {"t0": 6}]], "milestones": [6, 25]}),
    schedule("SequentialLR", "steps, functions", {"schedulers": [["StepLR", {"stepSize": 3}], ["LambdaLR", {"lrLambda": "harmonic"}],
             ["MultiStepLR", {"milestones": [4, 6]}], ["PolynomialLR", {"totalIters": 9}]], "milestones": [10, 20, 35]}),
    schedule("ChainedScheduler", "two", {"schedulers": [["ConstantLR", {"factor": 0.1, "totalIters": 5}], ["ExponentialLR", {"gamma": 0.9}]]}),
]

OUT.parent.mkdir(exist_ok=True)
line = lambda c: json.dumps(c, separators=(",", ":"))
head = {"torch": torch.__version__, "snapshots": SNAPSHOTS, "start": [v for p in START for v in p], "x": X, "y": Y, "metrics": METRICS}
lines = lambda all: ",\n".join(map(line, all))
OUT.write_text(line(head)[:-1] + f',\n"runs":[\n{lines(RUNS)}\n],\n"schedules":[\n{lines(SCHEDULES)}\n]}}\n')
print(f"{len(RUNS)} runs, {len(SCHEDULES)} schedules -> {OUT}")
