"""Random cases of operations in the format of common.py, with gradients and second derivatives, for fuzz.soak.test.ts of packages/autograd.
`python3 scripts/golden/fuzz.py SEED COUNT` prints one batch. Without arguments each line of stdin is a list of requests
`{"seed": …, "count": …}`, and each request is answered by one line, after a first line with PyTorch's version. A case that PyTorch refuses is left out.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F
from common import NAMES, In, case, cases, grad_case, rng, seed, values
from tables import ACTIVATIONS, UNARY

torch.set_num_threads(1)
BASIC = [
    ("neg", torch.neg, -2, 2), ("exp", torch.exp, -2, 2), ("log", torch.log, 0.3, 3), ("sqrt", torch.sqrt, 0.3, 3), ("sin", torch.sin, -4, 4), ("cos", torch.cos, -4, 4),
    ("tanh", torch.tanh, -3, 3), ("sigmoid", torch.sigmoid, -3, 3), ("relu", torch.relu, -2, 2), ("abs", torch.abs, -2, 2), ("sign", torch.sign, -2, 2),
    ("erfinv", torch.erfinv, -0.9, 0.9), ("nanToNum", torch.nan_to_num, -2, 2), ("clone", torch.clone, -2, 2),
]
PERIODIC = ("sin", "cos", "tan")
ENDS = {
    "float32": [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 1e-30, 3.4e38, -3.4e38, 88.0, -88.0, 104.0, -104.0, 1e20, math.inf, -math.inf, math.nan],
    "float64": [0.0, -0.0, 1.0, -1.0, 0.5, 1e-310, 1e-200, 1.7e308, -1.7e308, 709.0, -709.0, 750.0, -750.0, 1e160, math.inf, -math.inf, math.nan],
}


def pick(choices):
    return choices[rng.randint(len(choices))]


def chance(p):
    return rng.uniform() < p


def floating():
    return "float32" if chance(0.7) else "float64"


def any_dtype():
    return pick(["float32", "float32", "float32", "float64", "float64", "int32", "bool"])


def shape_of(low=0, high=4, empty=True):
    if low <= 1 and chance(0.08):
        return [pick([33, 81, 100, 130])]
    # Where kernels work by vectors, and more than is staged at once.
    if low <= 2 < high and chance(0.04):
        return pick([[3, 90], [90, 3], [9, 33], [2, 300], [17, 17], [2, 1100]])
    shape = [int(rng.randint(1, 6)) for _ in range(rng.randint(low, high))]
    if shape and empty and chance(0.04):
        shape[rng.randint(len(shape))] = 0
    return shape


def fresh(shape, dtype, low, high, special):
    if dtype == "int32":
        return torch.tensor(rng.randint(math.ceil(min(low, 1)), max(math.floor(high), 1) + 1, tuple(shape)), dtype=torch.int32).reshape(shape)
    x = values(tuple(shape), dtype, low, high)
    if special and dtype in ENDS:
        flat = x.reshape(-1)
        for i in range(len(flat)):
            if chance(0.4):
                end = pick(ENDS[dtype])
                # Of a huge argument a sine shows the rounding alone.
                flat[i] = 1.0 if special == "periodic" and abs(end) > 1e9 and math.isfinite(end) else end
    return x


def laid(shape, dtype="float32", low=-2, high=2, special=False, depth=2, expands=True):
    """An input of that shape in a random layout: dense, transposed, part of a larger tensor, with steps between its elements, expanded."""
    shape = list(shape)
    n = len(shape)
    kind = pick(["dense", "dense", "dense", "transpose", "permute", "narrow", "select", "step", *["expand"] * expands]) if depth else "dense"
    inner = lambda base: laid(base, dtype, low, high, special, depth - 1, expands)
    via = lambda x, *step: In(x.base, *x.via, step)
    if kind in ("transpose", "permute") and n > 1:
        order = [int(d) for d in rng.permutation(n)]
        base = inner([shape[order.index(d)] for d in range(n)])
        return via(base, "permute", order)
    if kind == "narrow" and n > 0:
        d, before, after = int(rng.randint(n)), int(rng.randint(3)), int(rng.randint(3))
        return via(inner([s + before + after if i == d else s for i, s in enumerate(shape)]), "narrow", d, before, shape[d])
    if kind == "select":
        d = int(rng.randint(n + 1))
        return via(inner([*shape[:d], 3, *shape[d:]]), "select", d, int(rng.randint(3)))
    if kind == "step":
        return via(inner([*shape, 2]), "select", n, 1)
    if kind == "expand" and n > 0:
        d = int(rng.randint(n))
        return via(inner([1 if i == d else s for i, s in enumerate(shape)]), "expand", shape)
    return In(fresh(shape, dtype, low, high, special))


def broadcast(shape):
    """A shape that broadcasts with another: some dimensions 1, some of the first left out."""
    part = [1 if chance(0.25) else s for s in shape]
    return part[rng.randint(len(part) + 1):] if chance(0.4) else part


def add(op, fn, *args, twice=True):
    grad_case(f"{len(cases)}", op, fn, *args, twice=twice)


def index(shape, below):
    shape = [shape] if isinstance(shape, int) else shape
    return In(torch.tensor(rng.randint(0, below, tuple(shape)), dtype=torch.int32).reshape(shape))


def unary():
    name, fn, low, high = pick(UNARY + BASIC)
    special = chance(1 / 3)
    dtype = floating() if name in ACTIVATIONS or special else any_dtype()
    x = laid(shape_of(), dtype, low, high, "periodic" if special and name in PERIODIC else special)
    add(name, fn, x, twice=not special)


def options():
    kind, dtype, shape, special = rng.randint(5), floating(), shape_of(), chance(1 / 3)
    x = laid(shape, dtype, -4, 4, special)
    if kind == 0:
        low, high = pick([(-1.0, 1.0), (0.5, None), (None, 0.5), (1.0, -1.0), (0.0, math.inf), (-math.inf, 0.0)])
        add("clamp", torch.clamp, x, low, high, twice=not special)
    elif kind == 1:
        add("leakyRelu", F.leaky_relu, x, round(rng.uniform(0, 1), 2), twice=not special)
    elif kind == 2:
        add("elu", F.elu, x, round(rng.uniform(0.1, 2), 2), twice=not special)
    elif kind == 3:
        add("softplus", lambda x, o: F.softplus(x, o["beta"], o["threshold"]), x, {"beta": pick([0.5, 1, 2]), "threshold": pick([1, 3, 20])}, twice=not special)
    else:
        add("gelu", lambda x, o: F.gelu(x, approximate=o["approximate"]), x, {"approximate": "tanh"}, twice=not special)


BINARY = [
    ("add", torch.add, -2, 2), ("sub", torch.sub, -2, 2), ("mul", torch.mul, -2, 2), ("div", torch.div, 0.3, 2), ("maximum", torch.maximum, -2, 2),
    ("minimum", torch.minimum, -2, 2), ("pow", torch.pow, 0.3, 2), ("atan2", torch.atan2, 0.3, 2), ("logaddexp", torch.logaddexp, -3, 3),
    ("remainder", torch.remainder, 0.3, 3), ("fmod", torch.fmod, 0.3, 3), ("floorDivide", lambda a, b: torch.div(a, b, rounding_mode="floor"), 0.3, 3),
]
QUESTIONS = [(name, getattr(torch, name), -1, 1) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
QUESTIONS += [("logicalAnd", torch.logical_and, -1, 1), ("logicalOr", torch.logical_or, -1, 1), ("logicalXor", torch.logical_xor, -1, 1)]


def binary():
    op, fn, low, high = pick(BINARY + BINARY + QUESTIONS)
    special = chance(1 / 3)
    full = shape_of()
    sides = [full, broadcast(full)]
    if chance(0.5):
        sides.reverse()
    dtypes = [floating()] * 2 if chance(0.6) else [any_dtype(), any_dtype()]
    # Of integers 0 as a divisor raises in PyTorch; see KERNELS.md.
    x, y = [laid(s, t, max(low, 1) if t == "int32" and low > 0 else low, high, special) for s, t in zip(sides, dtypes)]
    if chance(0.25) and op not in ("maximum", "minimum", "atan2", "logaddexp", "logicalAnd", "logicalOr", "logicalXor"):
        y = pick([2, 0.5, 3, 1.5])
        add(op, fn, x, y, twice=not special)
    else:
        add(op, fn, x, y, twice=not special)


def power():
    special = chance(1 / 3)
    exponent = pick([0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5])
    add("pow", torch.pow, laid(shape_of(), floating(), 0.3, 2, special), exponent, twice=not special)


def ternary():
    full, dtype, special = shape_of(), floating(), chance(1 / 3)
    x, y, z = [laid(s, dtype, 0.3, 2, special) for s in (full, broadcast(full), broadcast(full))]
    kind = rng.randint(5)
    if kind == 0:
        add("where", torch.where, laid(broadcast(full), "bool"), x, y, twice=not special)
    elif kind == 1:
        add("lerp", torch.lerp, x, y, pick([0.0, 0.3, 0.5, 0.8, 1.0]), twice=not special)
    elif kind == 2:
        add("lerp", torch.lerp, x, y, z, twice=not special)
    else:
        op, fn = pick([("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv)])
        add(op, lambda x, a, b, o: fn(x, a, b, value=o["value"]), x, y, z, {"value": pick([1, -0.3, 2.5])}, twice=not special)


def every(x, dims):
    return list(range(x.dim())) if dims is None else dims


def reduction():
    shape = shape_of()
    n = len(shape)
    one = int(rng.randint(-n, n)) if n and chance(0.6) else None
    many = [int(d) for d in rng.permutation(n)[: rng.randint(1, n + 1)]] if n and chance(0.4) else one
    keep = bool(chance(0.4))
    special = chance(0.2)
    x = laid(shape, floating(), -2, 2, special)
    op = pick(["sum", "mean", "amax", "amin", "prod", "var", "std", "norm", "logSumExp", "argmax", "argmin", "cumsum", "cumprod", "softmax", "logSoftmax"])
    twice = not special
    if op in ("prod", "cumprod") and math.prod(shape) > 60:
        # The product of many stays in range.
        x = laid(shape, NAMES[x.base.dtype], 0.97, 1.03)
    if op in ("sum", "mean", "amax", "amin"):
        if op == "sum" and chance(0.3):
            x = laid(shape, pick(["int32", "bool"]))
        fn = getattr(torch, op)
        add(op, lambda x, d, k: fn(x, every(x, d) if op in ("sum", "mean") else [] if d is None else d, k), x, many, keep, twice=twice)
    elif op == "prod":
        keep = keep and one is not None
        if chance(0.2):
            x = laid(shape[:2], "int32")
            one = None if one is None or not -len(shape[:2]) <= one < len(shape[:2]) else one
            keep = keep and one is not None
        add(op, lambda x, d, k: torch.prod(x) if d is None else torch.prod(x, d, k), x, one, keep, twice=twice)
    elif op in ("var", "std"):
        fn = getattr(torch, op)
        # Of equal elements PyTorch's deviation is its rounding, and the gradient a quotient by that.
        x = laid(shape, NAMES[x.base.dtype], -2, 2, special, expands=False)
        add(op, lambda x, d, k, o: fn(x, every(x, d), correction=o["correction"], keepdim=k), x, many, keep, {"correction": pick([0, 1, 1])}, twice=twice)
    elif op == "norm":
        p = pick([2, 2, 1, 3, 1.5, 0, math.inf, -math.inf])
        norm = lambda x, p, d, k: torch.norm(x, p, every(x, d), k)
        if chance(0.1) and not special:
            x.base.reshape(-1)[:1] = 0
        # The number of elements that are not 0 has no gradient in PyTorch, and one of zeros here.
        case(f"{len(cases)}", op, norm, x, p, many, keep) if p == 0 else add(op, norm, x, p, many, keep, twice=twice)
    elif op == "logSumExp":
        add(op, lambda x, d, k: torch.logsumexp(x, every(x, d), k), x, many, keep, twice=twice)
    elif op in ("argmax", "argmin"):
        fn = getattr(torch, op)
        add(op, lambda x, d, k: fn(x, d, k), x, one, keep and one is not None)
    else:
        fn = {"cumsum": torch.cumsum, "cumprod": torch.cumprod, "softmax": torch.softmax, "logSoftmax": torch.log_softmax}[op]
        add(op, fn, x, one or 0, twice=twice)


def product():
    m, k, n = [int(v) for v in rng.choice([1, 2, 3, 5, 9, 17, 40], 3)]
    if chance(0.05):
        k = 0
    dtype = floating()
    x = lambda *s: laid(s, dtype)
    kind = rng.randint(6)
    if kind == 0:
        add("bmm", torch.bmm, x(3, m, k), x(3, k, n))
    elif kind == 1:
        add("matmul", torch.matmul, x(*broadcast([2, 3]), m, k), x(*broadcast([2, 3]), k, n))
    elif kind == 2:
        add("matmul", torch.matmul, x(*pick([(k,), (m, k), (2, m, k)])), x(k))
    elif kind == 3:
        add("matmul", torch.matmul, x(k), x(*pick([(k, n), (2, k, n)])))
    elif kind == 4:
        add("linear", F.linear, x(*pick([(k,), (m, k), (2, m, k)])), x(n, k), x(n) if chance(0.7) else None)
    else:
        add("matmul", torch.matmul, x(m, k), x(k, n))


def view():
    shape = shape_of(1)
    n = len(shape)
    d = int(rng.randint(n))
    dtype = any_dtype()
    x = laid(shape, dtype)
    kind = rng.randint(8)
    if kind == 0:
        total = math.prod(shape)
        to = pick([[total], [1, total, 1], [*shape[:-1], 1, shape[-1]], [*reversed(shape)]])
        add("reshape", lambda x, s: x.reshape(s), x, to)
    elif kind == 1:
        add("permute", lambda x, o: x.permute(o), x, [int(v) for v in rng.permutation(n)])
    elif kind == 2:
        to = [2, *shape] if chance(0.5) else [3, 1, *shape]
        add("expand", lambda x, s: x.expand(s), x, to)
    elif kind == 3:
        start = int(rng.randint(shape[d] + 1))
        add("narrow", lambda x, d, s, n: x.narrow(d, s, n), x, d, start, int(rng.randint(shape[d] - start + 1)))
    elif kind == 4 and shape[d] > 0:
        add("select", lambda x, d, i: x.select(d, i), x, d, int(rng.randint(-shape[d], shape[d])))
    elif kind == 5:
        bound = lambda: None if chance(0.3) else int(rng.randint(-5, 6))
        cut = lambda x, d, a=None, b=None, s=1: x[(slice(None),) * d + (slice(a, b, s),)]
        add("slice", cut, x, d, bound(), bound(), int(rng.randint(1, 4)))
    elif kind == 6:
        parts = [x]
        for _ in range(rng.randint(1, 3)):
            other = [*shape]
            other[d] = int(rng.randint(1, 4))
            parts.append(laid(other, dtype if chance(0.7) else any_dtype()))
        add("cat", lambda parts, d: torch.cat(parts, d), parts, d)
    else:
        add("stack", lambda parts, d: torch.stack(parts, d), [x, laid(shape, dtype)], int(rng.randint(-n - 1, n + 1)))


def indexing():
    shape = shape_of(1, empty=False)
    d = int(rng.randint(len(shape)))
    dtype = floating()
    x = laid(shape, dtype)
    n = int(rng.randint(1, 6))
    other = [*shape]
    other[d] = n
    kind = pick(["gather", "scatter", "scatterAdd", "indexSelect", "indexAdd"])
    if kind == "indexSelect":
        add(kind, lambda x, d, i: x.index_select(d, i.long()), x, d, index(n, shape[d]))
    elif kind == "indexAdd":
        add(kind, lambda x, d, i, y: x.index_add(d, i.long(), y), x, d, index(n, shape[d]), laid(other, dtype))
    elif kind == "gather":
        add(kind, lambda x, d, i: x.gather(d, i.long()), x, d, index(other, shape[d]))
    elif kind == "scatterAdd":
        add(kind, lambda x, d, i, y: x.scatter_add(d, i.long(), y), x, d, index(other, shape[d]), laid(other, dtype))
    else:
        # No place twice: which write wins PyTorch leaves open.
        order = torch.tensor(rng.permutation(shape[d])).reshape([-1 if i == d else 1 for i in range(len(shape))])
        add(kind, lambda x, d, i, y: x.scatter(d, i.long(), y), x, d, In(order.expand(shape).int().contiguous()), laid(shape, dtype))


def network():
    dtype = floating()
    x = lambda *s: laid(s, dtype, -1, 1)
    n, c = [int(v) for v in rng.randint(1, 6, 2)]
    reduce = pick(["mean", "sum", "none"])
    kind = rng.randint(6)
    if kind == 0:
        add("crossEntropy", lambda x, t, r: F.cross_entropy(x, t.long(), reduction=r), laid([n, c], dtype, -4, 4), index(n, c), reduce)
    elif kind == 1:
        add("nllLoss", lambda x, t, r: F.nll_loss(x, t.long(), reduction=r), laid([n, c], dtype, -4, 0), index(n, c), reduce)
    elif kind == 2:
        shape = shape_of()
        add("mseLoss", lambda x, y, r: F.mse_loss(x, y, reduction=r), x(*shape), x(*shape), reduce)
    elif kind == 3:
        size = [c + 1] if chance(0.6) else [2, c]
        both = chance(0.7)
        norm = lambda x, n, w, b, o: F.layer_norm(x, n, w, b, o["eps"])
        add("layerNorm", norm, laid([n, *size], dtype, -1, 1, expands=False), size, x(*size) if both else None, x(*size) if both else None, {"eps": pick([1e-5, 0.1])})
    elif kind == 4:
        p = pick([2, 2, 1, 1.5, 3])
        add("cdist", torch.cdist, laid([n, 3], dtype, -2, 2, depth=0), laid([c, 3], dtype, -2, 2, depth=0), p, twice=False)
    else:
        groups = pick([1, 1, 2])
        k = [int(v) for v in rng.randint(1, 4, 2)]
        conv = lambda x, w, b, o: F.conv2d(x, w, b, **o)
        o = {"stride": pick([1, 2]), "padding": pick([0, 1]), "groups": groups}
        # PyTorch 1.13 is wrong about groups of a permuted image.
        y = x if groups == 1 else lambda *s: laid(s, dtype, -1, 1, depth=0)
        add("conv2d", conv, y(2, 2 * groups, 4, 5), y(2 * groups, 2, *k), x(2 * groups) if chance(0.6) else None, o)


def distinct(*shape):
    """Which of equal elements is chosen PyTorch leaves open: there are none."""
    n = math.prod(shape)
    return In(torch.tensor(rng.permutation(n) / 8.0 - n / 16, dtype=torch.float64).reshape(shape).to(torch.float32 if chance(0.7) else torch.float64))


def order():
    shape = shape_of(1, empty=False)
    n, d, dtype = len(shape), int(rng.randint(len(shape))), floating()
    kind = pick(["topk", "topk", "sort", "flip", "tril", "triu", "max", "min", "argsort"])
    named = lambda r: {"values": r[0], "indices": r[1]}
    if kind == "topk":
        wide = [*shape[:d], pick([shape[d], 60, 300]), *shape[d + 1:]]
        add(kind, lambda x, k, d, o: named(torch.topk(x, k, d, **o)), distinct(*wide), int(rng.randint(0, wide[d] + 1)), d, {"largest": bool(chance(0.5))})
    elif kind in ("sort", "argsort"):
        both = lambda x, d, o: torch.sort(x, dim=d, stable=True, **o)
        add(kind, lambda x, d, o: named(both(x, d, o)) if kind == "sort" else both(x, d, o)[1], laid(shape, dtype), d, {"descending": bool(chance(0.5))})
    elif kind == "flip":
        add(kind, torch.flip, laid(shape, dtype), [int(v) for v in rng.permutation(n)[: rng.randint(1, n + 1)]])
    elif kind in ("tril", "triu"):
        add(kind, getattr(torch, kind), laid([*shape, int(rng.randint(1, 40))], dtype), int(rng.randint(-9, 10)))
    else:
        fn = getattr(torch, kind)
        add(kind, lambda x, d, k: named(fn(x, d, k)), distinct(*shape), d, bool(chance(0.5)))


def images():
    dtype = floating()
    n, c, h, w = int(rng.randint(1, 4)), int(rng.randint(1, 7)), int(rng.randint(3, 14)), int(rng.randint(3, 20))
    x = lambda *s: laid(s, dtype, -1, 1, depth=1, expands=False)
    kind = rng.randint(5)
    if kind == 0:
        size = [int(v) for v in rng.randint(1, 4, 2)]
        o = {"stride": [int(v) for v in rng.randint(1, 4, 2)], "padding": [int(rng.randint(v // 2 + 1)) for v in size], "ceilMode": bool(chance(0.3))}
        given = lambda o: {"stride": o["stride"], "padding": o["padding"], "ceil_mode": o["ceilMode"]}
        if chance(0.5):
            add("maxPool2d", lambda x, k, o: F.max_pool2d(x, k, **given(o)), distinct(n, c, h, w), size, o, twice=False)
        else:
            more = {**o, "countIncludePad": bool(chance(0.5))}
            add("avgPool2d", lambda x, k, o: F.avg_pool2d(x, k, **given(o), count_include_pad=o["countIncludePad"]), x(n, c, h, w), size, more)
    elif kind == 1:
        batch = lambda x, m, v, w, b, o: F.batch_norm(x, m, v, w, b, True, 0.1, o["eps"])
        shape = pick([[4 * n, 5 * c], [n + 1, c, h * w], [n, c, h, w]])
        both = chance(0.7)
        # PyTorch 1.13 is wrong about permuted images.
        add("batchNorm", batch, laid(shape, dtype, -1, 1, depth=0), None, None, x(shape[1]) if both else None, x(shape[1]) if both else None, {"training": True, "eps": pick([1e-5, 0.1])})
    elif kind == 2:
        groups = pick([1, 2, 3])
        group = lambda x, n, w, b, o: F.group_norm(x, n, w, b, o["eps"])
        add("groupNorm", group, x(n, c * groups, h, w), groups, x(c * groups), x(c * groups), {"eps": pick([1e-5, 0.1])})
    else:
        k, d = [int(v) for v in rng.randint(1, 5, 2)], int(rng.randint(1, 3))
        o = {"stride": pick([1, 1, 1, 2]), "padding": int(rng.randint(3)), "dilation": d}
        add("conv2d", lambda x, w, b, o: F.conv2d(x, w, b, **o), x(n, c, h, w), x(int(rng.randint(1, 14)), c, *k), None, o, twice=bool(chance(0.3)))


def attended():
    dtype, (b, l, s, e, v) = floating(), [int(x) for x in (rng.randint(1, 4), pick([1, 5, 19, 70]), pick([1, 4, 23, 90]), pick([1, 3, 4, 8]), pick([1, 4, 7]))]
    x = lambda *shape: laid(shape, dtype, -1, 1, depth=1)
    kind = rng.randint(3)
    o = [{}, {"isCausal": True}, {"scale": 0.25}][kind]
    if kind == 0 and chance(0.6):
        o = {"attnMask": laid([l, s], pick(["bool", dtype]), -1, 1, depth=1)}

    def attention(q, k, v, o):
        """PyTorch has it from 2.0 on."""
        scores = q @ k.transpose(-2, -1) * o.get("scale", q.shape[-1] ** -0.5)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if o.get("isCausal") else o.get("attnMask")
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        return scores.softmax(-1) @ v

    # The derivative of a query that sees no key is NaN by the formula, and 0 in PyTorch's kernel.
    if o.get("attnMask") is not None and o["attnMask"].tensor().dtype == torch.bool and not o["attnMask"].tensor().any(-1).all():
        return
    add("scaledDotProductAttention", attention, x(b, 2, l, e), x(b, 2, s, e), x(b, 2, s, v), o, twice=l * s < 300)


FAMILIES = [unary] * 8 + [options, power, ternary, ternary, network, network, network] + [binary] * 5 + [reduction] * 4 + [product] * 2 + [view] * 3 + [indexing] * 2 + [order] * 3 + [images] * 2 + [attended]


def batch(request):
    cases.clear()
    seed(request["seed"])
    while len(cases) < request["count"]:
        try:
            pick(FAMILIES)()
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
    return json.dumps({"cases": cases}, separators=(",", ":"))


if len(sys.argv) > 2:
    print(batch({"seed": int(sys.argv[1]), "count": int(sys.argv[2])}))
else:
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        for request in json.loads(line):
            print(batch(request), flush=True)
