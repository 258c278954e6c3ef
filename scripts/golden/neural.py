"""Writes packages/autograd/golden/neural.json: what PyTorch computes in float64 for the operations of neural networks, results and gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/neural.py

A tensor is {"t": dtype, "shape", "data"}; inputs have three decimals, so that they are nearly the same in float32. Gradients are those of the
results' sum, the i-th element of each weighted by 1 + frac(0.37 i); null for arguments without one.
"""
import json
import math
import os

import numpy
import torch
import torch.nn.functional as F

rng = numpy.random.RandomState(23)
cases = []


def values(*shape, low=-2.0, high=2.0):
    return torch.tensor(numpy.round(rng.uniform(low, high, shape), 3), dtype=torch.float64)


def ints(below, *shape):
    return torch.tensor(rng.randint(0, below, shape))


def digits(x):
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return int(x) if x == int(x) else float(f"{x:.15g}")


def plain(t):
    if t is None:
        return None
    kind = "float64" if t.is_floating_point() else "bool" if t.dtype == torch.bool else "int32"
    return {"t": kind, "shape": list(t.shape), "data": [digits(float(v)) for v in t.detach().reshape(-1).tolist()]}


def case(op, label, fn, *args, constant=()):
    """fn gets the tensors among args (None included); `constant`: positions of real tensors that want no gradient."""
    encoded = [plain(a) if isinstance(a, torch.Tensor) else a for a in args]
    wanted = [isinstance(a, torch.Tensor) and a.is_floating_point() and i not in constant for i, a in enumerate(args)]
    tensors = [a.clone().requires_grad_() if want else a for a, want in zip(args, wanted)]
    outs = fn(*[a for a in tensors if a is None or isinstance(a, torch.Tensor)])
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    loss = sum(
        (o * (1 + torch.arange(o.numel(), dtype=torch.float64) * 0.37 % 1).reshape(o.shape)).sum() for o in outs if o.is_floating_point()
    )
    leaves = [a for a, want in zip(tensors, wanted) if want]
    found = iter(torch.autograd.grad(loss, leaves, allow_unused=True) if leaves else ())
    grads = [plain(next(found)) if want else None for want in wanted]
    cases.append({"op": op, "label": label, "args": encoded, "outs": [plain(o) for o in outs], "grads": grads})


# --- linear ---
for label, shape in (("a vector", (3,)), ("a matrix", (4, 3)), ("three dimensions", (2, 3, 3)), ("no rows", (0, 3)), ("one row", (1, 3))):
    case("linear", label, F.linear, values(*shape), values(2, 3), values(2))
case("linear", "no bias", lambda x, w, b: F.linear(x, w), values(4, 3), values(2, 3), None)
case("linear", "one output", F.linear, values(5, 4), values(1, 4), values(1))
case("linear", "nothing to sum", F.linear, values(2, 0), values(3, 0), values(3))
case("linear", "beyond a tile", F.linear, values(9, 17), values(13, 17), values(13))

path = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "autograd", "golden", "neural.json")
with open(path, "w") as file:
    head = json.dumps({"by": "scripts/golden/neural.py", "torch": torch.__version__})[:-1]
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    file.write(f'{head}, "cases": [\n{lines}\n]}}\n')
print(f"{len(cases)} cases")
