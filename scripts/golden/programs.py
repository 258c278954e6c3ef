"""Differentiates the random programs of programs.mjs, which calls this, with PyTorch: programs on stdin, those that remain, with their values,
gradients and, where all operations are smooth, second derivatives on stdout. Everything in float64.

A program is dropped when PyTorch refuses it (an in-place write to what backward needs, say), when its values run away,
or when rounding decides its results.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F

LARGEST = 1e4
# Leaves are moved so far to see whether a program is steady, and its results may move this much (relative to 1 + the largest).
SHIFT, STEADY = 1e-14, 1e-11
torch.set_default_dtype(torch.float64)


def ints(values, shape=None):
    t = torch.tensor(values, dtype=torch.int64)
    return t if shape is None else t.reshape(shape)


def dims(x, dim):
    return tuple(range(x.dim())) if dim is None else dim


def prod(x, dim, keep):
    return x.prod() if dim is None else x.prod(dim, keepdim=keep)


SMOOTH = {
    "neg": torch.neg, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "silu": F.silu,
    "softplus": F.softplus, "square": torch.square, "erf": torch.erf, "clone": torch.clone, "contiguous": lambda x: x.contiguous(),
    "safeExp": lambda x: torch.exp(torch.tanh(x)), "safeLog": lambda x: torch.log(x * x + 0.5), "safeSqrt": lambda x: torch.sqrt(x * x + 0.5),
    "safeReciprocal": lambda x: torch.reciprocal(x * x + 0.5), "safeRsqrt": lambda x: torch.rsqrt(x * x + 0.5), "logSigmoid": F.logsigmoid,
    "pow": torch.pow, "mulNumber": lambda x, n: x * n, "rsubNumber": lambda x, n: n - x,
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "safeDiv": lambda x, y: x / (y * y + 0.5),
    "sum": lambda x, dim, keep: x.sum(dims(x, dim), keepdim=keep), "mean": lambda x, dim, keep: x.mean(dims(x, dim), keepdim=keep),
    "logSumExp": lambda x, dim, keep: x.logsumexp(dims(x, dim), keepdim=keep), "prod": prod,
    "var": lambda x, dim, keep: x.var(dims(x, dim), unbiased=True, keepdim=keep),
    "safeNorm": lambda x, dim, keep: torch.linalg.vector_norm(x * x + 0.5, 2, dims(x, dim), keepdim=keep),
    "softmax": torch.softmax, "logSoftmax": torch.log_softmax, "cumsum": torch.cumsum, "flip": lambda x, dim: x.flip(dim),
    "transpose": torch.transpose, "reshape": torch.reshape, "permute": torch.permute, "expand": lambda x, shape: x.expand(shape),
    "unsqueeze": torch.unsqueeze, "squeeze": torch.squeeze, "narrow": torch.narrow, "select": torch.select,
    "slice": lambda x, dim, start, end, step: x[(slice(None),) * dim + (slice(start, end, step),)],
    "cat": lambda *a: torch.cat(a[:-1], a[-1]), "stack": lambda *a: torch.stack(a[:-1], a[-1]),
    "splitFirst": lambda x, size, dim: x.split(size, dim)[0], "repeat": lambda x, times: x.repeat(times), "pad": F.pad,
    "tril": torch.tril, "triu": torch.triu,
    "gather": lambda x, dim, shape, index: x.gather(dim, ints(index, shape)),
    "scatterAdd": lambda x, y, dim, shape, index: x.scatter_add(dim, ints(index, shape), y),
    "indexSelect": lambda x, dim, index: x.index_select(dim, ints(index)),
    "maskedFill": lambda x, mask, value: x.masked_fill(torch.tensor(mask, dtype=torch.bool).reshape(x.shape), value),
    "embedding": lambda x, shape, index: F.embedding(ints(index, shape), x),
    "matmul": torch.matmul, "matmulTransposed": lambda x, y: x @ y.transpose(-2, -1), "einsum": lambda x, y, spec: torch.einsum(spec, x, y),
    "linear": F.linear, "layerNorm": lambda *a: F.layer_norm(a[0], a[-1], *a[1:-1]),
    "conv2dSelf": lambda x: F.conv2d(x, x[:, :, :2, :2]), "avgPool2d": lambda x, k, s: F.avg_pool2d(x, k, s),
    "add_": lambda x, y: x.add_(y), "mul_": lambda x, y: x.mul_(y), "tanh_": lambda x: x.tanh_(),
}
KINKED = {
    "relu": F.relu, "abs": torch.abs, "floor": torch.floor, "leakyRelu": F.leaky_relu, "elu": F.elu, "clamp": torch.clamp,
    "maximum": torch.maximum, "minimum": torch.minimum, "where": lambda x, y: torch.where(x > y, x * 2, y),
    "amax": lambda x, dim, keep: x.amax(dims(x, dim), keepdim=keep), "amin": lambda x, dim, keep: x.amin(dims(x, dim), keepdim=keep),
    "max": lambda x, dim, keep: x.max(dim, keepdim=keep)[0], "maxPool2d": lambda x, k, s: F.max_pool2d(x, k, s),
}
OPS = {**SMOOTH, **KINKED}


def weights(t, place):
    """Known to both sides: the weight of element i of the value at a place."""
    return torch.tensor([math.sin(1 + i + 3 * place) for i in range(t.numel())]).reshape(t.shape)


def evaluate(program, shift=0.0):
    leaves = [torch.tensor(leaf["data"]) for leaf in program["leaves"]]
    leaves = [(x + shift * (1.0 + torch.arange(x.numel())).sin()).reshape(leaf["shape"]).requires_grad_() for x, leaf in zip(leaves, program["leaves"])]
    values, used = list(leaves), set()
    for op, args, attrs in program["steps"]:
        used.update(args)
        values.append(OPS[op](*[values[i] for i in args], *attrs))
        if values[-1].numel() and not float(values[-1].abs().max()) < LARGEST:
            return None
    rest = [(i, v) for i, v in enumerate(values) if i not in used]
    return leaves, sum((v * weights(v, i)).sum() for i, v in rest)


def numbers(t):
    return [] if t is None else [float("%.13g" % v) for v in t.reshape(-1).tolist()]


def finite(grads):
    return all(g is None or (bool(torch.isfinite(g).all()) and (g.numel() == 0 or float(g.abs().max()) < LARGEST)) for g in grads)


def differentiate(program, shift=0.0):
    result = evaluate(program, shift)
    if result is None:
        return None
    leaves, loss = result
    smooth = all(op in SMOOTH for op, _, _ in program["steps"])
    grads = torch.autograd.grad(loss, leaves, allow_unused=True, create_graph=smooth)
    if not finite(grads):
        return None
    out = {**program, "value": numbers(loss)[0], "grads": [None if g is None else numbers(g) for g in grads]}
    if smooth:
        squares = sum((g * g).sum() for g in grads if g is not None and g.requires_grad)
        if not isinstance(squares, int):
            second = torch.autograd.grad(squares, leaves, allow_unused=True)
            if not finite(second):
                return None
            out["second"] = [None if g is None else numbers(g) for g in second]
    return out


def steady(done):
    """Whether its results hardly change with its leaves: where rounding decides, nothing can be compared."""
    shifted = differentiate({k: done[k] for k in ("leaves", "steps")}, SHIFT)
    if shifted is None or ("second" in shifted) != ("second" in done):
        return False
    lists = lambda p: [[p["value"]], *p["grads"], *p.get("second", [])]
    for a, b in zip(lists(done), lists(shifted)):
        if (a is None) != (b is None):
            return False
        if a and max(abs(x - y) for x, y in zip(a, b)) > STEADY * (1 + max(map(abs, a))):
            return False
    return True


def main():
    count = int(sys.argv[1])
    kept, refused = [], 0
    for program in json.load(sys.stdin):
        if len(kept) == count:
            break
        try:
            done = differentiate(program)
            done = done if done is not None and steady(done) else None
        except RuntimeError:
            # An in-place write that PyTorch refuses.
            done = None
        if done is None:
            refused += 1
        elif len(done["steps"]) > 0:
            kept.append(done)
    if len(kept) < count:
        sys.exit(f"only {len(kept)} of {count} programs stand")
    print('{"programs": [\n' + ",\n".join(json.dumps(p, separators=(",", ":")) for p in kept) + "\n]}")
    used = {op for p in kept for op, _, _ in p["steps"]}
    sys.stderr.write(f"{count} programs, {refused} dropped, {sum('second' in p for p in kept)} with second derivatives, {len(used)} of {len(OPS)} operations\n")


main()
