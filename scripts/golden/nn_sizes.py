"""Writes packages/nn/golden/sizes.json, which `packages/nn/src/sizes.test.ts` compares: LSTM and GRU at sizes where rows are longer than a vector and than what
is staged at once, and steps of all optimizers with fused kernels over parameters of such sizes. Inputs are seeds and results are sums (common.py).

Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/nn_sizes.py
"""
import json
import pathlib
import re

import torch
import common
from common import Made, result, weights

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/nn/golden/sizes.json"
torch.set_num_threads(1)
common.listed_max = 40
DTYPES = ("float32", "float64")


def layer(kind, dtype, length, batch, width, hidden, options):
    """Weights in the order of the state dict, then the input and the states; outputs, and the gradients of all of them."""
    module = getattr(torch.nn, kind)(width, hidden, **options).to(common.DTYPES[dtype])
    state = {name: Made(tuple(value.shape), dtype, -0.25, 0.25) for name, value in module.state_dict().items()}
    module.load_state_dict({name: made.tensor() for name, made in state.items()})
    layers = options.get("num_layers", 1)
    inputs = [Made((length, batch, width), dtype)] + [Made((layers, batch, hidden), dtype) for _ in range(2 if kind == "LSTM" else 1)]
    x, *states = [made.tensor().clone().requires_grad_() for made in inputs]
    y, last = module(x, tuple(states) if kind == "LSTM" else states[0])
    outputs = [y, *(last if kind == "LSTM" else [last])]
    sum((out * weights(out)).sum() for out in outputs).backward()
    return {
        "label": f"{kind}, {dtype}, {[length, batch, width, hidden]}",
        "layer": kind,
        "args": [width, hidden, {"numLayers": layers}],
        "state": {name: made.json() for name, made in state.items()},
        "inputs": [made.json() for made in inputs],
        "outputs": [result(out) for out in outputs],
        "inputGrads": [result(leaf.grad) for leaf in (x, *states)],
        "grads": {name: result(p.grad) for name, p in module.named_parameters()},
    }


def steps(kind, options, dtype, n):
    """Five steps of one parameter, by gradients that are given."""
    made = Made((n,), dtype)
    grads = [Made((n,), dtype, -0.5, 0.5) for _ in range(5)]
    p = made.tensor().clone().requires_grad_()
    optimizer = getattr(torch.optim, kind)([p], **{re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name): x for name, x in options.items()})
    for grad in grads:
        p.grad = grad.tensor()
        optimizer.step()
    label = f"{kind}, {json.dumps(options)}, {dtype}, {n} elements"
    return {"label": label, "optimizer": kind, "options": options, "p": made.json(), "grads": [grad.json() for grad in grads], "out": result(p)}


LAYERS = [
    layer(kind, dtype, *size, options)
    for kind in ("LSTM", "GRU")
    for dtype in DTYPES
    for size, options in (((5, 3, 7, 21), {}), ((4, 16, 10, 64), {"num_layers": 2}), ((2, 9, 5, 350), {}))
]
OPTIMIZERS = [
    ("SGD", {"lr": 0.1, "weightDecay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weightDecay": 0.02}),
    ("Adam", {"lr": 0.01, "weightDecay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.01, "weightDecay": 0.1}),
    ("NAdam", {"lr": 0.01, "weightDecay": 0.1}),
    ("RAdam", {"lr": 0.01, "weightDecay": 0.1}),
    ("Adamax", {"lr": 0.01, "weightDecay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lrDecay": 0.05, "weightDecay": 0.05}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weightDecay": 0.1}),
    ("RMSprop", {"lr": 0.01, "weightDecay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5}),
]
STEPS = [steps(kind, options, dtype, n) for kind, options in OPTIMIZERS for dtype in DTYPES for n in (7, 131, 5003)]

line = lambda c: json.dumps(c, separators=(",", ":"))
groups = ",\n".join(f'"{name}":[\n' + ",\n".join(map(line, cases)) + "\n]" for name, cases in (("layers", LAYERS), ("steps", STEPS)))
OUT.write_text(f'{{"by":"scripts/golden/nn_sizes.py","torch":"{torch.__version__}",\n{groups}}}\n')
print(f"{len(LAYERS)} layers, {len(STEPS)} runs of steps")
