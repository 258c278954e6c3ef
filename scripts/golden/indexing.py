"""Writes packages/tensor/golden/indexing.json: views, joining, indexing and matrix composites as PyTorch computes them, with gradients.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/indexing.py
"""
import math

import torch
import torch.nn.functional as F
from common import In, case, grad_case, in_place, refused, rng, seed, values, write

seed(31)


def layouts(*shape, dtype="float32"):
    """The same shape dense, transposed in memory, inside of a larger tensor, and in float64."""
    rest = list(range(len(shape)))[::-1]
    yield "dense", In(values(shape, dtype))
    if len(shape) > 1:
        yield "permuted", In(values(shape[::-1], dtype), ("permute", rest))
        wide = (*shape[:-1], shape[-1] + 2)
        yield "inside", In(values(wide, dtype), ("narrow", len(shape) - 1, 1, shape[-1]))
    yield "float64", In(values(shape, "float64"))


# --- cutting and folding ---
flat = lambda x, a=0, b=-1: torch.flatten(x, a, b)
for label, x in layouts(2, 3, 2):
    grad_case(label, "flatten", flat, x)
    grad_case(f"{label} from 1", "flatten", flat, x, 1)
    grad_case(f"{label} up to -2", "flatten", flat, x, 0, -2)
    grad_case(label, "split", torch.split, x, 2, 1)
    grad_case(f"{label} by sizes", "split", torch.split, x, [1, 0, 2], -2)
    grad_case(label, "chunk", torch.chunk, x, 2, 1)
    grad_case(label, "unbind", torch.unbind, x, -1)
grad_case("0-d", "flatten", flat, In(values(())))
grad_case("empty", "flatten", flat, In(values((2, 0))))
grad_case("empty", "split", torch.split, In(values((0, 2))), 3)
grad_case("empty", "chunk", torch.chunk, In(values((0, 2))), 3)
grad_case("more than there is", "chunk", torch.chunk, In(values((2,))), 3)
grad_case("empty", "unbind", torch.unbind, In(values((2, 0))))
grad_case("int32", "unbind", torch.unbind, In(values((2, 2), "int32")))


# --- views ---
def sliced(x, dim, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]


for label, x in layouts(4, 5):
    for args in ((0, 1), (1, None, 3), (-1, -3, -1), (1, None, None, 2), (1, 1, 5, 3), (0, 3, 1), (0, -99, 99), (1, 4, None, 7)):
        grad_case(f"{label} {args}", "slice", sliced, x, *args)
    for step in (1, 2, 9):
        grad_case(f"{label} {step}", "everyNth", lambda x, d, n: sliced(x, d, None, None, n), x, 1, step)
    for offset in (None, 1, -2, 4, 7, -9):
        grad_case(f"{label} {offset}", "diagonal", lambda x, o=0: torch.diagonal(x, o or 0), x, offset)
        if abs(offset or 0) < 4:
            grad_case(f"{label} {offset}", "diag", lambda x, o=0: torch.diag(x, o or 0), x, offset)
for label, x in layouts(2, 3, 4):
    for args in ((0, 0, 2), (1, 2, 1), (-1, -1, 0)):
        grad_case(f"{label} {args}", "diagonal", torch.diagonal, x, *args)
    for source, destination in ((0, 2), (-1, 0), ([0, 1], [1, 2]), ([2, 0], [0, -1])):
        grad_case(f"{label} {source} {destination}", "movedim", torch.movedim, x, source, destination)
    grad_case(label, "swapaxes", torch.swapaxes, x, 0, -1)
    grad_case(label, "ravel", torch.ravel, x)
    grad_case(label, "unflatten", lambda x, d, s: x.unflatten(d, s), x, 2, [2, -1])
    for parts in (2, 3, [1, 3], [2, 1], [-1, 9], []):
        grad_case(f"{label} {parts}", "tensorSplit", lambda x, p, d: torch.tensor_split(x, p, d), x, parts, 2)
for label, x in layouts(1, 3):
    grad_case(label, "broadcastTo", torch.broadcast_to, x, [2, 4, 3])
    grad_case(label, "expandAs", lambda x, y: x.expand_as(y), x, In(values((2, 3))))
    grad_case(label, "broadcastTensors", lambda l: torch.broadcast_tensors(*l), [x, In(values((2, 1)), ("narrow", 0, 0, 2)), In(values(()))])
    grad_case(label, "squeeze", torch.squeeze, x, -2)
grad_case("several", "squeeze", lambda x, d: x.squeeze(0).squeeze(-1), In(values((1, 2, 1, 1))), [0, -1])
grad_case("3 as [1, 3]", "viewAs", lambda x, y: x.view_as(y), In(values((3,))), In(values((1, 3))))
grad_case("0-d", "ravel", torch.ravel, In(values(())))
for label, x in layouts(2, 3):
    for args in ((), (1,), (-2, 0, 1), (1, 0, -1), (0, 2, 0)):
        grad_case(f"{label} {args}", "diagEmbed", torch.diag_embed, x, *args)
for dtype in ("int32", "bool"):
    case(dtype, "diagEmbed", torch.diag_embed, In(values((2,), dtype)))
    case(dtype, "diag", torch.diag, In(values((3,), dtype)), -1)
    case(dtype, "slice", sliced, In(values((3, 4), dtype)), 1, None, None, 3)
grad_case("empty", "diagonal", torch.diagonal, In(values((0, 3))))
grad_case("empty", "diagEmbed", torch.diag_embed, In(values((2, 0))))
grad_case("empty", "slice", sliced, In(values((0, 3))), 0, 1, None, 2)

# --- copies ---
for label, x in layouts(2, 3):
    for repeats in ([2, 1], [1, 2, 3], [0, 2], [1, 1]):
        grad_case(f"{label} {repeats}", "repeat", lambda x, r: x.repeat(r), x, repeats)
    for repeats in ([2], [1, 2], [2, 1, 2]):
        grad_case(f"{label} {repeats}", "tile", torch.tile, x, repeats)
    for args in ((2,), (2, 0), (3, -1), (0, 1)):
        grad_case(f"{label} {args}", "repeatInterleave", torch.repeat_interleave, x, *args)
    grad_case(f"{label} counts", "repeatInterleave", torch.repeat_interleave, x, In(torch.tensor([2, 0, 1], dtype=torch.int32)), 1)
    for shifts, dims in ((1, None), (-2, None), (1, 0), (-4, 1), ([1, 2], [0, 1]), ([1, 1], [1, 1])):
        grad_case(f"{label} {shifts} {dims}", "roll", lambda x, s, d=None: torch.roll(x, s, d) if d is not None else torch.roll(x, s), x, shifts, dims)
    for dims in ([0], [1], [0, -1], []):
        grad_case(f"{label} {dims}", "flip", torch.flip, x, dims)
    for pads in ([1, 2], [0, 0, 1, 0], [-1, 2], [1, -2, -1, 3]):
        grad_case(f"{label} {pads}", "constantPad", lambda x, p, v=0: F.pad(x, p, "constant", v), x, pads)
        grad_case(f"{label} {pads}", "pad", lambda x, p, o: F.pad(x, p, "constant", o["value"]), x, pads, {"value": 1.5})
    grad_case(label, "hstack", torch.hstack, [x, In(values((2, 1)))])
    grad_case(label, "vstack", torch.vstack, [x, In(values((3,)))])
for label, x in layouts(2, 3, 4):
    for mode, pads in (("reflect", [3, 1]), ("reflect", [0, 2]), ("replicate", [2, 5]), ("circular", [4, 1])):
        grad_case(f"{label} {mode} {pads}", "pad", lambda x, p, o: F.pad(x, p, o["mode"]), x, pads, {"mode": mode})
for label, x in layouts(1, 2, 3, 4):
    for mode, pads in (("reflect", [1, 2, 2, 0]), ("replicate", [2, 0, 1, 3]), ("circular", [1, 1, 0, 3])):
        grad_case(f"{label} {mode} {pads}", "pad", lambda x, p, o: F.pad(x, p, o["mode"]), x, pads, {"mode": mode})
for dtype in ("int32", "bool"):
    case(dtype, "constantPad", lambda x, p, v: F.pad(x, p, "constant", v), In(values((2, 2), dtype)), [1, 0], 1)
    case(dtype, "repeat", lambda x, r: x.repeat(r), In(values((2,), dtype)), [2])
    case(dtype, "flip", torch.flip, In(values((2, 3), dtype)), [1])
grad_case("0-d", "repeat", lambda x, r: x.repeat(r), In(values(())), [2])
grad_case("0-d", "repeatInterleave", torch.repeat_interleave, In(values(())), 2)
grad_case("0-d", "roll", lambda x, s: torch.roll(x, s), In(values(())), 1)
grad_case("0-d", "hstack", torch.hstack, [In(values(())), In(values((2,)))])
grad_case("empty", "roll", lambda x, s, d: torch.roll(x, s, d), In(values((0, 2))), 1, 0)
grad_case("empty", "flip", torch.flip, In(values((0, 2))), [0])
grad_case("empty", "constantPad", lambda x, p: F.pad(x, p), In(values((0, 2))), [1, 0])
mesh = lambda tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing)
for indexing in ("ij", "xy"):
    grad_case(indexing, "meshgrid", mesh, [In(values((2,))), In(values((3,))), In(values(()))], indexing)
grad_case("one", "meshgrid", mesh, [In(values((2,)))], "xy")

# --- at indices ---
ints = lambda shape, below, low=0: In(torch.tensor(rng.randint(low, below, shape), dtype=torch.int32).reshape(shape))
long = lambda i: i.long()
for label, x in layouts(3, 4):
    for dim, n in ((0, 5), (-1, 2), (1, 0)):
        i = ints((n,), x.tensor().shape[dim])
        grad_case(f"{label} {dim}", "indexSelect", lambda x, d, i: torch.index_select(x, d, long(i)), x, dim, i)
        shape = list(x.tensor().shape)
        shape[dim] = n
        src = In(values(shape, "float64" if x.base.dtype == torch.float64 else "float32"))
        grad_case(f"{label} {dim}", "indexAdd", lambda x, d, i, y: torch.index_add(x, d, long(i), y), x, dim, i, src)
        grad_case(f"{label} {dim}", "indexFill", lambda x, d, i, v: torch.index_fill(x, d, long(i), v), x, dim, i, 7.5)
    for dim, shape in ((0, (5, 4)), (1, (2, 3)), (1, (3, 0)), (-2, (1, 2))):
        i = ints(shape, x.tensor().shape[dim])
        grad_case(f"{label} {dim} {shape}", "gather", lambda x, d, i: torch.gather(x, d, long(i)), x, dim, i)
        src = In(values(shape, "float64" if x.base.dtype == torch.float64 else "float32"))
        grad_case(f"{label} {dim} {shape}", "scatterAdd", lambda x, d, i, y: torch.scatter_add(x, d, long(i), y), x, dim, i, src)
    for dim, index in ((0, [[0, 2, 1, 0], [1, 0, 2, 2]]), (1, [[3, 0], [1, 2]]), (1, [[2, 0, 1, 3]])):
        # Each place once: PyTorch does not say which of several wins.
        i = In(torch.tensor(index, dtype=torch.int32))
        src = In(values(i.base.shape, "float64" if x.base.dtype == torch.float64 else "float32"))
        grad_case(f"{label} {index}", "scatter", lambda x, d, i, y: torch.scatter(x, d, long(i), y), x, dim, i, src)
        grad_case(f"{label} {index} a number", "scatter", lambda x, d, i, v: torch.scatter(x, d, long(i), v), x, dim, i, -1.5)
    grad_case(label, "take", lambda x, i: torch.take(x, long(i)), x, ints((2, 3), 12, -12))
    grad_case(f"{label} flat", "takeAlongDim", lambda x, i: torch.take_along_dim(x.contiguous(), long(i)), x, ints((2, 3), 12))
    grad_case(f"{label} columns", "takeAlongDim", lambda x, i, d: torch.take_along_dim(x, long(i), d), x, ints((1, 2), 4), 1)
    grad_case(f"{label} rows", "takeAlongDim", lambda x, i, d: torch.take_along_dim(x, long(i), d), x, ints((1, 4), 3), 0)
    m = In(values((3, 4), "bool"))
    row = In(values((4,), "bool"))
    grad_case(label, "maskedFill", lambda x, m, v: x.masked_fill(m, v), x, m, -3.5)
    grad_case(f"{label} a row", "maskedFill", lambda x, m, v: x.masked_fill(m, v), x, row, In(values(())))
    grad_case(f"{label} larger mask", "maskedFill", lambda x, m, v: x.masked_fill(m, v), x, In(values((2, 1, 1), "bool")), 0)
    # PyTorch 1.13's gradient is in the wrong order where x is not contiguous.
    dense_select = lambda x, m: torch.masked_select(x.contiguous(), m)
    grad_case(label, "maskedSelect", dense_select, x, m)
    grad_case(f"{label} a row", "maskedSelect", dense_select, x, row)
    for k in (None, 1, -2, 9, -9):
        grad_case(f"{label} {k}", "tril", lambda x, k=0: torch.tril(x, k or 0), x, k)
        grad_case(f"{label} {k}", "triu", lambda x, k=0: torch.triu(x, k or 0), x, k)
    case(label, "nonzero", torch.nonzero, x)
    case(label, "nonzero", torch.nonzero, m)
grad_case("a batch", "tril", torch.tril, In(values((2, 3, 2))), -1)
grad_case("a batch", "triu", torch.triu, In(values((2, 3, 2))), 1)
grad_case("0-d value", "indexFill", lambda x, d, i, v: torch.index_fill(x, d, long(i), v), In(values((3, 2))), 0, In(torch.tensor([2, 0], dtype=torch.int32)), In(values(())))
case("from the end", "indexFill", lambda x, d, i, v: torch.index_fill(x, d, long(i), v), In(values((3, 2))), 0, In(torch.tensor([-1, 0], dtype=torch.int32)), 3)
grad_case("0-d", "indexSelect", lambda x, d, i: torch.index_select(x, d, long(i)), In(values(())), 0, ints((1,), 1))
grad_case("0-d index", "indexSelect", lambda x, d, i: torch.index_select(x, d, long(i)), In(values((3, 2))), 0, In(torch.tensor(2, dtype=torch.int32)))
grad_case("0-d", "gather", lambda x, d, i: torch.gather(x, d, long(i)), In(values(())), 0, In(torch.tensor(0, dtype=torch.int32)))
grad_case("transposed index", "gather", lambda x, d, i: torch.gather(x, d, long(i)), In(values((3, 4))), 1, In(ints((3, 2), 4).base.t().contiguous(), ("transpose", 0, 1)))
for dtype in ("int32", "bool"):
    case(dtype, "indexSelect", lambda x, d, i: torch.index_select(x, d, long(i)), In(values((3, 2), dtype)), 0, ints((4,), 3))
    case(dtype, "gather", lambda x, d, i: torch.gather(x, d, long(i)), In(values((3, 2), dtype)), 0, ints((4, 2), 3))
    case(dtype, "scatter", lambda x, d, i, y: torch.scatter(x, d, long(i), y), In(values((3, 2), dtype)), 0, ints((1, 2), 3), In(values((1, 2), dtype)))
    case(dtype, "tril", torch.tril, In(values((3, 3), dtype)))
    case(dtype, "maskedFill", lambda x, m, v: x.masked_fill(m, v), In(values((4,), dtype)), In(values((4,), "bool")), 1)
    case(dtype, "maskedSelect", torch.masked_select, In(values((4,), dtype)), In(values((4,), "bool")))
    case(dtype, "nonzero", torch.nonzero, In(values((2, 2), dtype)))
case("int32", "scatterAdd", lambda x, d, i, y: torch.scatter_add(x, d, long(i), y), In(values((3, 2), "int32")), 0, ints((4, 2), 3), In(values((4, 2), "int32")))
case("int32", "indexAdd", lambda x, d, i, y: torch.index_add(x, d, long(i), y), In(values((3, 2), "int32")), 0, ints((4,), 3), In(values((4, 2), "int32")))
case("0-d", "nonzero", torch.nonzero, In(torch.tensor(3.0)))
case("empty", "nonzero", torch.nonzero, In(values((0, 2))))
for shape in ((4,), (2, 3), ()):
    case(f"{shape}", "oneHot", lambda i, n=-1: F.one_hot(long(i), -1 if n is None else n), ints(shape, 4), None)
    case(f"{shape} of 6", "oneHot", lambda i, n: F.one_hot(long(i), n), ints(shape, 4), 6)
case("none", "oneHot", lambda i, n: F.one_hot(long(i), n), ints((0,), 1), 2)


# --- indices between brackets ---
def specs_of(specs):
    parse = lambda s: slice(*[int(p) if p else None for p in s.split(":")])
    one = lambda s: Ellipsis if s == "..." else parse(s) if isinstance(s, str) else s.long() if isinstance(s, torch.Tensor) and s.dtype == torch.int32 else s
    return tuple(one(s) for s in specs)


mask = lambda *bits: In(torch.tensor(bits, dtype=torch.bool))
at = lambda *i: In(torch.tensor(i, dtype=torch.int32))
SPECS = [
    ("a number", [1]), ("numbers", [-1, 0, 2]), ("a range", ["1:"]), ("ranges", [":", "-2:", "::2"]), ("all", ["..."]),
    ("last dimension", ["...", 0]), ("first and last", [1, "...", "1:3"]), ("new ones", [None, "...", None, 0]), ("new one between", [0, None, ":2"]),
    ("a step and a number", ["::2", 1, "::3"]),
    ("rows", [at(1, 0, 1)]), ("columns", [":", at(2, -1)]), ("behind an ellipsis", ["...", at(3, 0)]), ("neighbours", [":", at(2, 0), at(3, -1)]),
    ("apart", [at(1, 0), ":", at(3, 2)]), ("apart with a range", [at(1, 0), "1:", at(3, 2)]), ("all three", [at(1, 0), at(2, 1), at(0, 0)]),
    ("broadcast", [at([0], [1]), at(2, 0, 1)]), ("broadcast, apart", [at([0], [1]), ":", at(2, 0, 1)]), ("a number beside", [0, ":", at(3, 1)]),
    ("a number between", [at(1, 0), 0, at(3, 2)]), ("a number, then one", [1, at(2, 0)]), ("a new one beside", [at(1, 0), None]), ("a new one between", [at(1, 0), None, at(2, 1)]),
    ("0-d index", [In(torch.tensor(1, dtype=torch.int32))]), ("0-d index beside another", [at(0, 1), In(torch.tensor(-1, dtype=torch.int32)), at(2, 3)]), ("no index", [In(torch.zeros(0, dtype=torch.int32)), "..."]),
    ("mask of rows", [mask(False, True)]), ("mask of columns", [":", mask(True, False, True)]), ("mask of two", [mask([True, False, True], [False, True, True])]),
    ("mask of the last two", ["...", In(values((3, 4), "bool"))]), ("mask of all", [In(values((2, 3, 4), "bool"))]), ("mask and index", [mask(True, True), ":", at(3, 0)]),
    ("mask of none", [mask(False, False)]), ("range and index", ["1:", at(2, 1, 0), "::2"]),
]
for label, specs in SPECS:
    for layout, x in [("dense", In(values((2, 3, 4)))), ("permuted", In(values((4, 3, 2)), ("permute", [2, 1, 0]))), ("float64", In(values((2, 3, 4), "float64")))][: 3 if len(label) % 2 else 2]:
        grad_case(f"{label}, {layout}", "index", lambda x, specs: x[specs_of(specs)], x, specs)


def put(x, specs, v, accumulate=False):
    y = x.clone()
    places = torch.arange(y.numel()).reshape(y.shape)[specs_of(specs)]
    given = (v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=y.dtype)).expand(places.shape).reshape(-1)
    places = places.reshape(-1)
    # x[…] += v adds once where an index comes several times; index_put_ with accumulate adds each time.
    if accumulate:
        return y.reshape(-1).index_add(0, places, given).reshape(y.shape)
    # Of several writes to one place only the last is made: PyTorch gives a gradient to all of them.
    last = sorted({place: i for i, place in enumerate(places.tolist())}.values())
    return y.reshape(-1).index_put((places[last],), given[last]).reshape(y.shape)


for label, specs in SPECS:
    if label in ("rows", "no index"):
        continue
    x = In(values((2, 3, 4)))
    shape = list(x.tensor()[specs_of([s.tensor() if isinstance(s, In) else s for s in specs])].shape)
    v = In(values(shape[-1:]))
    grad_case(label, "indexPut", put, x, specs, v)
    grad_case(f"{label}, adding", "indexPut", put, x, specs, v, True)
    in_place(f"{label}, transposed", "indexPut_", lambda x, specs, v: x.__setitem__(specs_of(specs), v) or x, In(values((4, 3, 2)), ("permute", [2, 1, 0])), specs, 2.5)
grad_case("rows twice, adding", "indexPut", put, In(values((2, 3))), [at(1, 0, 1)], In(values((3, 3))), True)
in_place("dense", "maskedFill_", lambda x, m, v: x.masked_fill_(m, v), In(values((2, 3))), In(values((2, 3), "bool")), 9)
in_place("inside, a row", "maskedFill_", lambda x, m, v: x.masked_fill_(m, v), In(values((4, 3)), ("narrow", 0, 1, 2)), In(values((3,), "bool")), -1.5)
in_place("int32", "maskedFill_", lambda x, m, v: x.masked_fill_(m, v), In(values((3,), "int32")), In(values((3,), "bool")), 4)

for label, x in (("dense", lambda d: In(values((3, 4), d))), ("transposed", lambda d: In(values((4, 3), d), ("transpose", 0, 1))), ("inside", lambda d: In(values((3, 6), d), ("narrow", 1, 1, 4)))):
    for dtype in ("float32", "int32"):
        i = In(torch.tensor([[2, 0], [1, 0]], dtype=torch.int32))
        in_place(f"{label} {dtype}", "scatter_", lambda x, d, i, y: x.scatter_(d, long(i), y), x(dtype), 0, In(torch.tensor([[2, 0], [1, 1]], dtype=torch.int32)), In(values((2, 2), dtype)))
        in_place(f"{label} {dtype} a number", "scatter_", lambda x, d, i, y: x.scatter_(d, long(i), y), x(dtype), 1, i, 3)
        in_place(f"{label} {dtype}", "scatterAdd_", lambda x, d, i, y: x.scatter_add_(d, long(i), y), x(dtype), 0, i, In(values((2, 2), dtype)))
        in_place(f"{label} {dtype}", "indexAdd_", lambda x, d, i, y: x.index_add_(d, long(i), y), x(dtype), 1, ints((5,), 4), In(values((3, 5), dtype)))

# --- products ---
for label, x in layouts(2, 3):
    dtype = "float64" if x.base.dtype == torch.float64 else "float32"
    v = lambda *shape: In(values(shape, dtype))
    grad_case(label, "mm", torch.mm, x, v(3, 2))
    grad_case(label, "mv", torch.mv, x, v(3))
    grad_case(label, "trace", torch.trace, x)
    for options in (None, {"beta": 0.5, "alpha": -2}, {"beta": 0}):
        grad_case(f"{label} {options}", "addmm", lambda c, a, b, o: torch.addmm(c, a, b, **(o or {})), v(2), x, v(3, 2), options)
    grad_case(label, "tensordot", torch.tensordot, x, v(3, 2), 1)
    grad_case(f"{label} two", "tensordot", torch.tensordot, x, v(2, 3, 2))
    grad_case(f"{label} outer", "tensordot", torch.tensordot, x, v(2), 0)
    grad_case(f"{label} lists", "tensordot", torch.tensordot, x, v(4, 3, 2), [[1, 0], [-2, 2]])
    grad_case(label, "cosineSimilarity", lambda a, b, o: F.cosine_similarity(a, b, **(o or {})), x, v(2, 3), None)
    grad_case(f"{label} broadcast", "cosineSimilarity", lambda a, b, o: F.cosine_similarity(a, b, **(o or {})), x, v(4, 1, 3), {"dim": -1, "eps": 0.1})
    grad_case(label, "pairwiseDistance", lambda a, b, o: F.pairwise_distance(a, b, **(o or {})), x, v(2, 3), None)
    grad_case(f"{label} p 1", "pairwiseDistance", lambda a, b, o: F.pairwise_distance(a, b, **(o or {})), x, v(3), {"p": 1, "eps": 0, "keepdim": True})
for dtype in ("float32", "float64", "int32"):
    v = lambda *shape: In(values(shape, dtype))
    for op in ("dot", "outer"):
        grad_case(dtype, op, getattr(torch, op), v(3), v(3))
grad_case("other lengths", "outer", torch.outer, In(values((3,))), In(values((2,))))
grad_case("empty", "dot", torch.dot, In(values((0,))), In(values((0,))))
grad_case("strided", "dot", torch.dot, In(values((3, 2)), ("select", 1, 0)), In(values((3, 2)), ("select", 1, 1)))
for options in (None, {"beta": 2, "alpha": 0.5}):
    grad_case(f"{options}", "baddbmm", lambda c, a, b, o: torch.baddbmm(c, a, b, **(o or {})), In(values((2, 1))), In(values((3, 2, 4))), In(values((3, 4, 2))), options)
grad_case("int32", "trace", torch.trace, In(values((3, 3), "int32")))
EINSUM = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("bij,bjk->bik", (2, 3, 2), (2, 2, 4)), ("i,i->", (3,), (3,)), ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)), ("i,j->ji", (2,), (3,)), ("ij->ji", (2, 3)), ("ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iji->j", (2, 3, 2)), ("iij,j->i", (2, 2, 3), (3,)),
    ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->i", (2, 3), (2, 3)), ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)), ("bqhd,bkhd->bhqk", (2, 3, 2, 2), (2, 4, 2, 2)),
    ("i,ij,j->", (2,), (2, 3), (3,)), ("bn,anm,bm->ba", (2, 3), (2, 3, 4), (2, 4)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("a,b,c->cab", (2,), (3,), (2,)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)), ("...i,...i->...", (2, 3), (2, 3)), ("...,...", (2, 3), (3,)), ("i...->...i", (2, 3, 2)), ("...i->i...", (2, 3, 2)), ("i...,i...->...", (2, 3), (2, 1)),
    ("...->...", (2, 3)), ("...ii->...i", (2, 3, 3)), (",i->i", (), (3,)), (",", (), ()), ("Ba,aC", (2, 3), (3, 2)), (" i j , j -> i ", (2, 3), (3,)),
    ("ij,jk->k", (2, 3), (3, 4)), ("ijk,ilk->jl", (2, 3, 2), (2, 4, 2)), ("ab,cd->abcd", (2, 1), (1, 3)), ("ij,jk->ik", (2, 1), (3, 4)), ("ij,jk->ik", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 2)),
    ("ijkl,jl->ki", (2, 3, 2, 2), (3, 2)), ("i...j,j...->...i", (2, 3, 2), (2, 3)),
]
for equation, *shapes in EINSUM:
    for dtype in ("float32", "float64"):
        grad_case(f"{equation} {shapes} {dtype}", "einsum", lambda e, l: torch.einsum(e, *l), equation, [In(values(shape, dtype)) for shape in shapes])
grad_case("transposed", "einsum", lambda e, l: torch.einsum(e, *l), "ij,jk->ik", [In(values((3, 2)), ("transpose", 0, 1)), In(values((4, 3)), ("transpose", 0, 1))])
grad_case("twice the same", "einsum", lambda e, l: torch.einsum(e, *l), "ij,kj->ik", [In(values((2, 3))), In(values((2, 3)), ("narrow", 0, 0, 2))])

# Cases that were added later come last, so that the values above stay.
for p in (2, 0, 1, 1.5, 3, math.inf):
    grad_case(f"p {p}", "cdist", torch.cdist, In(values((3, 4))), In(values((2, 4))), p)
    grad_case(f"p {p} float64, batches that broadcast", "cdist", torch.cdist, In(values((2, 1, 3, 2), "float64")), In(values((3, 4, 2), "float64")), p)
    grad_case(f"p {p}, distance 0", "cdist", torch.cdist, In(torch.tensor([[1.0, 2.0], [0.5, -1.0]])), In(torch.tensor([[1.0, 2.0]])), p)
    case(f"p {p}, rows of nothing", "cdist", torch.cdist, In(values((2, 0))), In(values((3, 0))), p)
    case(f"p {p}, no rows", "cdist", torch.cdist, In(values((0, 2))), In(values((3, 2))), p)
grad_case("by default", "cdist", torch.cdist, In(values((5, 3), "float32"), ("narrow", 0, 1, 3)), In(values((3, 2)), ("transpose", 0, 1)))
case("special values", "cdist", torch.cdist, In(torch.tensor([[math.inf, 0.0], [math.nan, 0.0], [1.0, 0.0]])), In(torch.tensor([[math.inf, 0.0], [2.0, -math.inf]])))
refused("p -1", "cdist", torch.cdist, In(values((2, 3))), In(values((2, 3))), -1)
refused("a vector", "cdist", torch.cdist, In(values((3,))), In(values((2, 3))))
refused("rows of two lengths", "cdist", torch.cdist, In(values((2, 3))), In(values((2, 1))))
refused("int32", "cdist", torch.cdist, In(values((2, 3), "int32")), In(values((2, 3), "int32")))

write("indexing")
