"""The format of the golden cases of operations, shared by the scripts of this folder that write packages/tensor/golden/*.json. Such a script seeds,
makes its cases and writes them; `ops.suite.ts` of tensor runs them on every backend, and autograd checks the gradients of those that hold some.

A tensor is {"t": dtype, "shape", "data" (row-major, of the base), "via": view operations on the base}. int64 results are called int32,
which is what postgrad has. The result is "out" (one tensor), "parts" (several, by name or place) or "value" (a boolean). An in-place case also
holds the base after the write, so that a write outside of the view shows. "grads": the gradients of sum(out * weights) for each tensor
argument, null for those that have none; see `weights`. "seconds": the gradients of sum(gradient * weights) over those that are wanted. "refused":
PyTorch raises an error, in its words.

Large tensors would make large files. An input may be "made": [seed, low, high] instead of data, which both languages compute (see `Made`), with other
elements "at" some places. If a script sets `listed_max`, then of a result of more elements than that the file holds "sums": those of BLOCKS runs of elements, each element times its weight
(see `result`); "at" then lists the elements that are not finite, which count as 0 in the sums. "data" is empty in both.
"""
import json
import math
import os

import numpy
import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64, "int32": torch.int32, "bool": torch.bool}
NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int32", torch.bool: "bool"}
rng = numpy.random.RandomState(20)
cases = []
# A result of more elements than these is written as sums, of so many runs. Inputs and the cases of other scripts are always listed.
listed_max, BLOCKS = math.inf, 32


def seed(n):
    rng.seed(n)


def number(x, dtype):
    """JSON has no NaN or infinities: these are strings. float32 in its shortest form."""
    if dtype == torch.bool:
        return int(x)
    if dtype in (torch.int32, torch.int64):
        return int(x)
    x = float(x)
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    if dtype == torch.float32:
        x = float(str(numpy.float32(x)))
    if x == 0 and math.copysign(1, x) < 0:
        return "-0"
    return int(x) if x == int(x) and abs(x) < 2**53 else x


def plain(t):
    if t._is_zerotensor():
        t = torch.zeros(t.shape, dtype=t.dtype)
    return {"t": NAMES[t.dtype], "shape": list(t.shape), "data": [number(v, t.dtype) for v in t.detach().reshape(-1).tolist()]}


def result(t):
    """As `plain`, but of many elements the sums."""
    if t.numel() <= listed_max:
        return plain(t)
    t = torch.zeros(t.shape, dtype=t.dtype) if t._is_zerotensor() else t
    flat = t.detach().reshape(-1)
    head = {"t": NAMES[t.dtype], "shape": list(t.shape)}
    wide = flat.to(torch.float64)
    strange = [i for i, v in enumerate(wide.tolist()) if not math.isfinite(v)]
    wide[strange] = 0
    weighted = wide * torch.tensor([(i * 7) % 11 + 6 for i in range(len(flat))], dtype=torch.float64)
    digits = 10 if t.dtype == torch.float32 else 17
    sums = [number(float(f"{run.sum():.{digits}g}"), torch.float64) for run in weighted.split(-(-len(flat) // BLOCKS))]
    return {**head, "data": [], "sums": sums, **({"at": [[i, number(flat[i], t.dtype)] for i in strange]} if strange else {})}


class In:
    """An input: a base tensor and the views taken of it."""

    def __init__(self, base, *via):
        self.base, self.via = base, via

    def tensor(self):
        x = self.base
        for name, *args in self.via:
            x = getattr(x, name)(*args)
        return x

    def json(self):
        out = plain(self.base)
        if self.via:
            out["via"] = [list(v) for v in self.via]
        return out


class Made(In):
    """An input of any size: element i is low + (high - low) · h / 2²⁰, where h are the upper 20 bits of a hash of i and a seed."""

    seeds = 0

    def __init__(self, shape, dtype="float32", low=-1.0, high=1.0, at=(), via=()):
        Made.seeds += 1
        self.made, self.at = [Made.seeds, low, high], [[i, number(x, torch.float32)] for i, x in at]
        n = int(numpy.prod(shape))
        # As 64 bits: products of two numbers of 32 bits fit.
        x = (numpy.arange(n, dtype=numpy.uint64) * numpy.uint64(0x9E3779B1) + numpy.uint64(Made.seeds)) & numpy.uint64(0xFFFFFFFF)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            x = ((x ^ (x >> numpy.uint64(shift))) * numpy.uint64(factor)) & numpy.uint64(0xFFFFFFFF)
        data = low + (high - low) * ((x >> numpy.uint64(12)).astype(numpy.float64) / 2**20)
        if dtype in ("int32", "bool"):
            data = numpy.floor(data)
        base = torch.tensor(data, dtype=torch.float64).to(DTYPES[dtype])
        for i, value in at:
            base[i] = value
        super().__init__(base.reshape(shape), *via)

    def json(self):
        out = {"t": NAMES[self.base.dtype], "shape": list(self.base.shape), "data": [], "made": self.made}
        if self.at:
            out["at"] = self.at
        if self.via:
            out["via"] = [list(v) for v in self.via]
        return out


def values(shape, dtype="float32", low=-2.0, high=2.0):
    n = int(numpy.prod(shape)) if len(shape) else 1
    if dtype == "bool":
        data = rng.randint(0, 2, n).astype(bool)
    elif dtype == "int32":
        data = rng.randint(int(math.floor(low)) - 3, int(math.ceil(high)) + 4, n).astype(numpy.int32)
    else:
        # Few digits keep the file small; they are rounded to the dtype like any others.
        data = numpy.round(rng.uniform(low, high, n), 3)
    return torch.tensor(data.tolist(), dtype=DTYPES[dtype]).reshape(shape)


def listed(a):
    """A list of arguments of which some are tensors."""
    return isinstance(a, list) and any(isinstance(x, In) for x in a)


def encode(a):
    if isinstance(a, In):
        return a.json()
    if listed(a):
        return {"list": [encode(x) for x in a]}
    if isinstance(a, dict):
        return {name: encode(x) for name, x in a.items()}
    if isinstance(a, float) and not math.isfinite(a):
        return {"number": number(a, torch.float64)}
    return a


def decode(a):
    if isinstance(a, In):
        return a.tensor()
    if listed(a):
        return [decode(x) for x in a]
    if isinstance(a, dict):
        return {name: decode(x) for name, x in a.items()}
    return a


def encode_result(out):
    if isinstance(out, torch.Tensor):
        return {"out": result(out)}
    if isinstance(out, bool):
        return {"value": out}
    return {"parts": {str(k): result(v) for k, v in (out.items() if isinstance(out, dict) else enumerate(out))}}


def case(label, op, fn, *args):
    out = fn(*[decode(a) for a in args])
    cases.append({"label": label, "op": op, "args": [encode(a) for a in args], **encode_result(out)})


def weights(t):
    """What the elements of a result are weighted with before they are summed for a gradient: exact in every dtype, none is 0."""
    w = [((i * 7) % 11 - 5.5) / 4 for i in range(t.numel())]
    return torch.tensor(w, dtype=t.dtype).reshape(t.shape)


def refused(label, op, fn, *args):
    """PyTorch raises an error."""
    try:
        fn(*[decode(a) for a in args])
    except Exception as error:  # whatever it raises
        cases.append({"label": label, "op": op, "args": [encode(a) for a in args], "refused": str(error).split("\n")[0]})
        return
    raise AssertionError(f"{op}, {label}: PyTorch does it")


def grad_case(label, op, fn, *args, twice=False):
    """As `case`, with the gradients of the arguments that are tensors of floating point; `twice`: with second derivatives."""
    leaf = lambda x: x.detach().clone().requires_grad_(torch.is_floating_point(x)) if isinstance(x, torch.Tensor) else x
    decoded = [[leaf(x) for x in a] if isinstance(a, list) else leaf(a) for a in (decode(a) for a in args)]
    tensors = [y for x in decoded for y in (x if isinstance(x, list) else [x]) if isinstance(y, torch.Tensor)]
    out = fn(*decoded)
    parts = [out] if isinstance(out, torch.Tensor) else list(out.values()) if isinstance(out, dict) else list(out)
    loss = sum((p * weights(p)).sum() for p in parts if p.requires_grad)
    wanted = [t for t in tensors if t.requires_grad]
    first = torch.autograd.grad(loss, wanted, allow_unused=True, create_graph=twice) if isinstance(loss, torch.Tensor) else [None] * len(wanted)

    def in_order(found):
        rest = iter(found)
        each = [next(rest) if t.requires_grad else None for t in tensors]
        return [None if g is None else result(g) for g in each]

    case = {"label": label, "op": op, "args": [encode(a) for a in args], **encode_result(out), "grads": in_order(first)}
    if twice:
        squares = sum((g * weights(g)).sum() for g in first if g is not None and g.requires_grad)
        case["seconds"] = in_order(torch.autograd.grad(squares, wanted, allow_unused=True) if isinstance(squares, torch.Tensor) else [None] * len(wanted))
    cases.append(case)


def in_place(label, op, fn, x, *args):
    encoded = [encode(x), *[encode(a) for a in args]]
    out = fn(x.tensor(), *[decode(a) for a in args])
    cases.append({"label": label, "op": op, "args": encoded, "out": plain(out), "base": plain(x.base)})


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -3.4e38, 88.0, -88.0, 104.0, -104.0, math.inf, -math.inf, math.nan]


def layouts(dtype, low=-2.0, high=2.0):
    v = lambda *shape: values(shape, dtype, low, high)
    return [
        ("0-d", In(v())),
        ("one element", In(v(1))),
        ("dense", In(v(2, 3))),
        ("empty", In(v(0, 3))),
        ("transposed", In(v(2, 3), ("transpose", 0, 1))),
        ("narrow with an offset", In(v(4, 3), ("narrow", 0, 1, 2))),
        ("strided inside", In(v(3, 5), ("narrow", 1, 1, 3))),
        ("selected column", In(v(3, 4), ("select", 1, 2))),
        ("expanded", In(v(3, 1), ("expand", [3, 4]))),
        ("permuted 3-d", In(v(2, 3, 4), ("permute", [2, 0, 1]))),
        ("vector of 37", In(v(37))),
    ]


def write(name):
    """All cases so far to packages/tensor/golden/<name>.json."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "tensor", "golden", f"{name}.json")
    with open(path, "w") as file:
        head = json.dumps({"by": f"scripts/golden/{name}.py", "torch": torch.__version__})[:-1]
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        file.write(f'{head}, "cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases")
