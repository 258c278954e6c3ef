"""Writes packages/tensor/golden/neural.json: linear layers, convolutions, pooling, normalisation, embeddings and losses as PyTorch computes them,
with gradients. Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/neural.py
"""
import torch
import torch.nn.functional as F
from common import In, case, grad_case, seed, values, write

seed(41)
v = lambda *shape, dtype="float32": In(values(shape, dtype, -1.0, 1.0))
d = lambda *shape: v(*shape, dtype="float64")
ints = lambda data: In(torch.tensor(data, dtype=torch.int32))


def both(label, op, fn, shapes, *rest):
    """In float32 and in float64; a shape of None is an argument that is left out."""
    for dtype in ("float32", "float64"):
        args = [None if shape is None else v(*shape, dtype=dtype) for shape in shapes]
        grad_case(f"{label}, {dtype}", op, fn, *args, *rest)


# --- linear ---
for label, shape in (("a vector", (3,)), ("a matrix", (4, 3)), ("three dimensions", (2, 3, 3)), ("no rows", (0, 3)), ("one row", (1, 3))):
    both(label, "linear", F.linear, (shape, (2, 3), (2,)))
both("no bias", "linear", F.linear, ((4, 3), (2, 3), None))
both("one output", "linear", F.linear, ((5, 4), (1, 4), (1,)))
both("nothing to sum", "linear", F.linear, ((2, 0), (3, 0), (3,)))
both("beyond a tile", "linear", F.linear, ((9, 17), (13, 17), (13,)))
T = ("transpose", 0, 1)
grad_case("strided", "linear", F.linear, In(values((3, 4)), T), In(values((3, 2)), T), In(values((2, 2)), ("select", 1, 1)))
grad_case("strided, three dimensions", "linear", F.linear, In(values((3, 2, 2)), ("permute", [1, 2, 0])), v(2, 3), v(2))

# --- convolutions ---
SNAKE = {"outputPadding": "output_padding"}


def conv(fn):
    return lambda x, w, b, o=None: fn(x, w, b, **{SNAKE.get(k, k): tuple(a) if isinstance(a, list) else a for k, a in (o or {}).items()})


CONV2D = [
    ("plain", ((2, 3, 4, 5), (2, 3, 2, 3), (2,)), {}),
    ("no bias", ((1, 2, 4, 4), (3, 2, 3, 3), None), {"padding": 1}),
    ("stride and padding", ((2, 2, 5, 4), (3, 2, 3, 3), (3,)), {"stride": 2, "padding": 1}),
    ("each side its own", ((1, 2, 5, 6), (2, 2, 2, 3), (2,)), {"stride": [2, 1], "padding": [0, 2], "dilation": [1, 2]}),
    ("groups", ((2, 4, 3, 3), (6, 2, 2, 2), (6,)), {"groups": 2}),
    ("depthwise", ((1, 3, 4, 4), (3, 1, 3, 3), (3,)), {"groups": 3, "padding": 1}),
    ("depthwise, twice as many, strided", ((2, 2, 5, 5), (4, 1, 3, 2), (4,)), {"groups": 2, "stride": 2, "dilation": [1, 2]}),
    ("one by one", ((2, 3, 2, 3), (4, 3, 1, 1), (4,)), {}),
    ("same", ((1, 2, 4, 5), (2, 2, 2, 3), (2,)), {"padding": "same"}),
    ("same, dilated", ((1, 1, 5, 5), (2, 1, 3, 2), (2,)), {"padding": "same", "dilation": 2}),
    ("valid", ((1, 1, 3, 3), (1, 1, 2, 2), (1,)), {"padding": "valid"}),
    ("one image without a batch", ((2, 4, 4), (3, 2, 3, 3), (3,)), {}),
    ("no images", ((0, 2, 4, 4), (3, 2, 3, 3), (3,)), {}),
    ("window as large as the image", ((2, 2, 3, 3), (2, 2, 3, 3), (2,)), {}),
]
for label, shapes, options in CONV2D:
    both(label, "conv2d", conv(F.conv2d), shapes, options)
grad_case("strided", "conv2d", conv(F.conv2d), In(values((4, 2, 3, 2)), ("permute", [3, 1, 2, 0])), In(values((2, 2, 2, 3)), ("transpose", 0, 3)), v(3))
for label, shapes, options in [
    ("plain", ((2, 3, 6), (2, 3, 3), (2,)), {}),
    ("all options", ((1, 4, 7), (2, 2, 2), (2,)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    ("same", ((1, 2, 5), (2, 2, 4), None), {"padding": "same"}),
    ("without a batch", ((3, 5), (2, 3, 2), (2,)), {}),
]:
    both(label, "conv1d", conv(F.conv1d), shapes, options)
for label, shapes, options in [
    ("plain", ((1, 2, 3, 3), (2, 3, 2, 2), (3,)), {}),
    ("strided", ((2, 3, 2, 3), (3, 2, 3, 3), (2,)), {"stride": 2, "padding": 1, "outputPadding": 1}),
    ("groups, dilated", ((1, 4, 2, 2), (4, 1, 2, 3), (2,)), {"groups": 2, "dilation": [2, 1], "stride": [1, 2]}),
    ("without a batch", ((2, 3, 2), (2, 1, 2, 2), None), {}),
]:
    both(label, "convTranspose2d", conv(F.conv_transpose2d), shapes, options)
both("strided", "convTranspose1d", conv(F.conv_transpose1d), ((2, 2, 4), (2, 3, 3), (3,)), {"stride": 2, "padding": 1, "outputPadding": 1})
both("without a batch", "convTranspose1d", conv(F.conv_transpose1d), ((2, 4), (2, 3, 3), (3,)), {})

G = {"n": 2, "c": 2, "h": 3, "w": 4, "o": 3, "kh": 2, "kw": 2, "oh": 2, "ow": 3, "strideH": 1, "strideW": 1, "padH": 0, "padW": 0, "dilH": 1, "dilW": 1, "groups": 1}
both("as conv2d", "convolution", lambda x, w, b, g: F.conv2d(x, w, b), ((2, 2, 3, 4), (3, 2, 2, 2), (3,)), G)
both("as the gradient", "convolutionInput", lambda y, w, g: F.conv_transpose2d(y, w), ((2, 3, 2, 3), (3, 2, 2, 2)), G)
# The weight's gradient as a convolution of x with y, images as channels.
both("as the gradient", "convolutionWeight", lambda x, y, g: F.conv2d(x.transpose(0, 1), y.transpose(0, 1)).transpose(0, 1), ((2, 2, 3, 4), (2, 3, 2, 3)), G)

write("neural")
