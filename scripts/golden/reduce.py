"""Writes packages/tensor/golden/reduce.json: reductions beyond those of ops.py, running sums and their derivatives, with gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/reduce.py
"""
import math

import torch
from common import In, case, grad_case, seed, values, write

seed(22)

SHAPES = [
    ("0-d", In(values(())), [None, 0]),
    ("vector", In(values((11,))), [None, -1]),
    ("matrix", In(values((3, 4))), [None, 0, 1]),
    ("3-d", In(values((2, 3, 2))), [1, [0, 2], [-1, 1]]),
    ("transposed", In(values((3, 4)), ("transpose", 0, 1)), [None, 0]),
    ("permuted", In(values((2, 3, 2)), ("permute", [1, 2, 0])), [[0, 2]]),
    ("expanded", In(values((3, 1)), ("expand", [3, 4])), [0, 1]),
    ("narrow", In(values((4, 5)), ("narrow", 1, 1, 3)), [None, 1]),
    ("float64", In(values((3, 4), "float64")), [None, 0]),
    ("ties", In(torch.tensor([[2.0, 2.0, 1.0], [1.0, 3.0, 3.0]])), [None, 0, 1]),
    ("zeros", In(torch.tensor([[0.0, 2.0, 1.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])), [None, 0, 1]),
    ("NaN", In(torch.tensor([[1.0, math.nan, 3.0], [math.inf, 2.0, -math.inf]])), [None, 0, 1]),
    ("int32", In(values((3, 4), "int32")), [None, 0]),
    ("bool", In(values((3, 4), "bool")), [None, 1]),
    ("empty", In(values((0, 3))), [None, 0, 1]),
]
every = lambda x, dims: list(range(x.dim())) if dims is None else dims


def extent(x, dims):
    if x.dim() == 0:
        return 1
    n = 1
    for d in every(x, dims) if not isinstance(dims, int) else [dims]:
        n *= x.shape[d]
    return n


for label, x, choices in SHAPES:
    view = x.tensor()
    real, whole = view.is_floating_point(), view.dtype == torch.int32
    for dims in choices:
        for keepdim in (False, True) if label == "matrix" else (False,):
            what = f"{label}, dims {dims}, keepdim {keepdim}"
            none = extent(view, dims) == 0
            one = None if isinstance(dims, list) else dims
            run = grad_case if real and label not in ("NaN", "empty") else case
            if not isinstance(dims, list):
                if dims is not None or not keepdim:
                    run(what, "prod", lambda x, d, k: torch.prod(x) if d is None else torch.prod(x, d, k), x, dims, keepdim)
                    if not none and view.dtype != torch.bool:
                        case(what, "argmin", lambda x, d, k: torch.argmin(x, d, k), x, dims, keepdim)
            if not none:
                run(what, "amin", lambda x, d, k: torch.amin(x, [] if d is None else d, k), x, dims, keepdim)
            reduced = every(view, dims)
            for op, fn in (("any", torch.any), ("all", torch.all)):
                if isinstance(dims, list):
                    flat = lambda x, d, k: fn(x.permute([i for i in range(x.dim()) if i not in [j % x.dim() for j in d]] + [j % x.dim() for j in d]).flatten(-len(d)), -1)
                    if not keepdim:
                        case(what, op, flat, x, dims, keepdim)
                elif dims is not None or not keepdim:
                    case(what, op, lambda x, d, k: fn(x) if d is None else fn(x, d, k), x, dims, keepdim)
            if not keepdim:
                case(f"{label}, dims {dims}", "countNonzero", lambda x, d: torch.count_nonzero(x, d), x, dims)
            if not real:
                continue
            if not (none and dims is None):
                run(what, "logSumExp", lambda x, d, k: torch.logsumexp(x, every(x, d), k), x, dims, keepdim)
            for p in (2, 1, 0, 3, 1.5, math.inf, -math.inf) if label in ("zeros", "float64") else (2,):
                if label == "zeros" and p == 1.5 and dims is not None:
                    continue  # PyTorch: NaN where a row is 0
                (case if p == 0 else run)(f"{what}, p {p}", "norm", lambda x, p, d, k: torch.norm(x, p, every(x, d), k), x, p, dims, keepdim)
            for correction in (1, 0) if label == "matrix" else (1,):
                options = {"correction": correction}
                if label == "NaN" or extent(view, dims) > correction:
                    run(f"{what}, correction {correction}", "var", lambda x, d, k, o: torch.var(x, every(x, d), correction=o["correction"], keepdim=k), x, dims, keepdim, options)
                    if label != "zeros":
                        run(f"{what}, correction {correction}", "std", lambda x, d, k, o: torch.std(x, every(x, d), correction=o["correction"], keepdim=k), x, dims, keepdim, options)
            if label == "matrix":
                run(what, "varMean", lambda x, d, k: torch.var_mean(x, every(x, d), unbiased=True, keepdim=k), x, dims, keepdim)

grad_case("constant", "std", lambda x, d: torch.std(x, d), In(torch.tensor([[1.0, 2.0], [1.0, 1.0]])), 1)
grad_case("far from 0", "var", lambda x: torch.var(x), In(torch.tensor([10000.25, 10001.5, 9999.125, 10000.0])))
case("one element", "var", torch.var, In(values((1,))))
for correction in (0, 1, 3):
    case(f"correction {correction}", "var", lambda x, d, k, o: torch.var(x, [0], correction=o["correction"], keepdim=k), In(values((3,))), None, False, {"correction": correction})
case("minus infinity", "logSumExp", lambda x, d: torch.logsumexp(x, d), In(torch.tensor([[-math.inf, -math.inf], [math.inf, 1.0], [1000.0, 1001.0]])), 1)
case("int32", "prod", torch.prod, In(torch.tensor([1000, 1000, 3], dtype=torch.int32)))

# --- running sums ---
reverse = lambda x, d: x.flip(d).cumsum(d).flip(d) if x.dim() else x.clone()
SCANS = (("cumsum", torch.cumsum), ("cumprod", torch.cumprod), ("reverseCumsum", reverse))
for label, x, dims in [
    ("0-d", In(values(())), [0]), ("vector", In(values((11,))), [0, -1]), ("matrix", In(values((3, 4))), [0, 1]), ("3-d", In(values((2, 3, 4))), [0, 1, -1]),
    ("transposed", In(values((3, 4)), ("transpose", 0, 1)), [0, 1]), ("float64", In(values((3, 4), "float64")), [1]),
    ("zeros", In(torch.tensor([[0.0, 2.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [2.0, 3.0, 4.0, 0.0]])), [0, 1]), ("empty", In(values((0, 3))), [0, 1]),
    ("int32", In(values((3, 4), "int32")), [0, 1]), ("bool", In(values((3, 4), "bool")), [1]),
]:
    for d in dims:
        for op, fn in SCANS:
            real = x.tensor().is_floating_point()
            (grad_case if real else case)(f"{label}, dim {d}", op, fn, x, d)


def backward(fn):
    def run(g, x, *args):
        leaf = x.detach().clone().requires_grad_(True)
        return torch.autograd.grad(fn(leaf, *args), leaf, g, create_graph=True)[0]

    return run


for op, fn, g in (("cumprodBackward", torch.cumprod, lambda x, d: x), ("prodBackward", torch.prod, lambda x, d: x.select(d, 0))):
    for label, x in (("matrix", values((3, 4))), ("float64", values((3, 4), "float64")), ("zeros", torch.tensor([[0.0, 2.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [2.0, 3.0, 4.0, 0.0]]))):
        for d in (0, 1):
            case(f"{label}, dim {d}", op, backward(fn), In(g(values((3, 4), str(x.dtype)[6:]), d)), In(x), d)
case("all", "prodBackward", backward(torch.prod), In(values(())), In(values((2, 3))))

# --- order ---
named = lambda r: {"values": r[0], "indices": r[1]}
ORDERED = [
    ("vector", In(values((9,))), [0, -1]), ("matrix", In(values((3, 4))), [0, 1]), ("3-d", In(values((2, 3, 2))), [1]), ("0-d", In(values(())), [0]),
    ("transposed", In(values((3, 4)), ("transpose", 0, 1)), [0, 1]), ("float64", In(values((3, 4), "float64")), [1]),
    ("ties", In(torch.tensor([[2.0, 2.0, 1.0, 2.0], [1.0, 3.0, 3.0, 1.0]])), [1]),
    ("NaN", In(torch.tensor([[1.0, math.nan, 3.0, -math.inf], [math.inf, 2.0, math.nan, math.nan]])), [1]),
    ("int32", In(torch.tensor([[5, -3, 2], [0, 7, -8]], dtype=torch.int32)), [0, 1]), ("bool", In(torch.tensor([True, False, True])), [0]),
]
for label, x, dims in ORDERED:
    view = x.tensor()
    run = grad_case if view.is_floating_point() and label != "NaN" else case
    for op, fn in (("max", torch.max), ("min", torch.min)):
        if view.numel() > 1:
            run(label, op, fn, x)
        for d in dims:
            for keepdim in (False, True):
                run(f"{label}, dim {d}, keepdim {keepdim}", op, lambda x, d, k: named(fn(x, d, k)), x, d, keepdim)
    for d in dims:
        for o in ({}, {"descending": True}):
            run(f"{label}, dim {d}, {o}", "sort", lambda x, d, o: named(torch.sort(x, dim=d, stable=True, **o)), x, d, o)
            case(f"{label}, dim {d}, {o}", "argsort", lambda x, d, o: torch.sort(x, dim=d, stable=True, **o)[1], x, d, o)
        if label not in ("ties", "NaN", "bool"):
            for k in (1, 2) if label != "0-d" else (1,):
                for o in ({}, {"largest": False}):
                    run(f"{label}, {k}, dim {d}, {o}", "topk", lambda x, k, d, o: named(torch.topk(x, k, d, **o)), x, k, d, o)

# Over nothing every norm is 0, also those that are an extreme.
for p in (math.inf, -math.inf, 2):
    for shape, dims in (((0, 3), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), [0, 1])):
        x = In(values(shape))
        case(f"empty {list(shape)}, dims {dims}, p {p}", "norm", lambda x, p, d: torch.norm(x, p, every(x, d)), x, p, dims)
write("reduce")
