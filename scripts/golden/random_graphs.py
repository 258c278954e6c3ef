"""PyTorch's side of packages/autograd/src/with-torch: reads lists of programs ({leaves, steps}, see builder.fixture.ts), one list
a line, and writes the outcome of each (see run.fixture.ts), one outcome a line. If PyTorch refuses a pass because of what it has
saved, the outcome has a second one, "copied": that of a PyTorch that saves copies and frees nothing, whose gradients are those of the
values that were recorded.

Four things are made otherwise than their names say, since PyTorch refuses or leaves open what postgrad defines; KERNELS.md lists them:
- split, chunk and unbind are narrow and select: PyTorch refuses writes into views that come from one call;
- scatter, indexPut and their like write the last of several values to a place, and no other;
- fill_ and zero_ of an expanded tensor write its first part: PyTorch writes there and raises in backward;
- detach_ of a tensor with a history gives its name to another tensor: in PyTorch what earlier nodes have saved would lose its history too.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)
DTYPES = {"float32": torch.float32, "float64": torch.float64}

# The first that an error's text contains says what kind it is; run.fixture.ts has the same kinds.
KINDS = [
    ("a leaf Variable that requires grad", "leaf"), ("a view of a leaf Variable", "leaf"),
    ("is a view and", "view"), ("A view was created in no_grad mode", "view"), ("is a view of", "view"),
    ("Output 0 of", "view"), ("Output 1 of", "view"),
    ("more than one element of the written-to tensor", "overlap"), ("some elements of the input tensor and the written-to tensor", "overlap"),
    ("modified by an inplace operation", "modified"), ("backward through the graph a second time", "freed"),
    ("does not require grad and does not have a grad_fn", "no grad"), ("One of the differentiated Tensors does not require grad", "no grad"),
    ("grad can be implicitly created only for scalar outputs", "not scalar"), ("appears to not have been used in the graph", "unused"),
    ("cannot register a hook on a tensor that", "hook"), ("can't retain_grad on Tensor that has requires_grad=False", "retain"),
    ("you can only change requires_grad flags of leaf", "flag"), ("Can't detach views in-place", "detach"), ("returned an invalid gradient", "gradient"),
    ("raised by a hook", "raised"), ("moved into the graph interior", "interior"), ("not compared", "not compared"),
    # Inputs that are another output of a root's own node.
    ("Expected a proper Tensor but got None", "not compared"), ("dependency not found", "not compared"), ("multiple times without checkpoint recomputation", "not compared"), ("INTERNAL ASSERT FAILED", "not compared"),
    ("could not compute gradients for some functions", "not compared"),
]


def kind(text):
    return next((name for part, name in KINDS if part in text), "other")


def ints(values, shape=None):
    t = torch.tensor(values, dtype=torch.int64)
    return t if shape is None else t.reshape(shape)


def ramp(x):
    return torch.tensor([math.sin(1 + i) for i in range(x.numel())], dtype=torch.float64).reshape(x.shape).to(x.dtype)


def winners(places):
    """Which of several writes to each place is the last: (places, positions of the writes)."""
    last = {}
    for position, place in enumerate(places):
        last[place] = position
    return list(last), list(last.values())


def scattered(dim, shape, index, x):
    """Coordinates of the places of a scatter, one by one."""
    coordinates = []
    for i, at in enumerate(index):
        place, rest = [], i
        for extent in reversed(shape):
            place.append(rest % extent)
            rest //= extent
        place.reverse()
        place[dim] = at
        coordinates.append(tuple(place))
    return coordinates


def same_dtype(x, src):
    if x.dtype != src.dtype:
        raise RuntimeError("the source has another dtype")


def scatter_last(put):
    def run(x, src, dim, shape, index):
        same_dtype(x, src)
        places, positions = winners(scattered(dim, shape, index, x))
        if not places:
            return put(x, (ints([]),), src.reshape(-1)[:0])
        return put(x, tuple(ints(list(c)) for c in zip(*places)), src.reshape(-1)[ints(positions)])
    return run


def put_last(put):
    def run(x, values, index, accumulate):
        if accumulate:
            return put(x, (ints(index),), values, True)
        places, positions = winners(index)
        rows = values.expand([len(index), *x.shape[1:]])[ints(positions)]
        return put(x, (ints(places),), rows)
    return run


def wider(x, y):
    return x.to(torch.result_type(x, y))


def pieces(x, size, dim):
    return [x.narrow(dim, i, min(size, x.shape[dim] - i)) for i in range(0, x.shape[dim], size)]


def chain(x, length):
    view = x
    for _ in range(length):
        view = view.view(x.shape)
    return view


def times(x, n):
    """x · n that saves nothing."""
    y = x.add(x, alpha=n - 1)
    y.data.copy_(x.detach() * n)
    return y


def times_(x, n):
    product = x.detach() * n
    x.add_(x, alpha=n - 1).data.copy_(product)
    return x


def first_of_expanded(x):
    for dim, (n, stride) in enumerate(zip(x.shape, x.stride())):
        if n > 1 and stride == 0:
            x = x.narrow(dim, 0, 1)
    return x


def in_first_row(g, rows):
    return g if rows == 1 else torch.cat([g, torch.cat([g] * (rows - 1), 0) * 0], 0)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y * y)


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Dirty(Twice):
    """Writes into its argument without a word."""
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        return x * 1


class Nothing(Twice):
    @staticmethod
    def backward(ctx, g):
        return None


class Reshaped(Same):
    @staticmethod
    def forward(ctx, x):
        return x.view(x.shape)


class Wrong(Twice):
    @staticmethod
    def backward(ctx, g):
        return torch.stack([g, g, g])


class Part(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        return x.narrow(0, 0, 1)

    @staticmethod
    def backward(ctx, g):
        return in_first_row(g, ctx.rows)


class FreshPart(Part):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        # PyTorch refuses writes into a view that is recorded; postgrad does not.
        first = (x * 2).contiguous().narrow(0, 0, 1)
        return first.clone() if Run.recording else first

    @staticmethod
    def backward(ctx, g):
        return in_first_row(g * 2, ctx.rows)


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, product, total):
        x, y = ctx.saved_tensors
        return product * y + total, product * x + total


class Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x, y * 2

    @staticmethod
    def backward(ctx, first, second):
        return first * 3, second * 2


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * 2, positive

    @staticmethod
    def backward(ctx, g, _):
        return g * 2


def writes(x, y):
    h = x * 2
    h.mul_(y)
    return h.sin_()


REFUSE_EXPANDED = ("indexFill_", "maskedFill_", "tril_", "triu_", "indexPut_", "scatter_", "cumsum_")


def in_order(t):
    """The same tensor, whose elements lie in their order."""
    if t._is_view():
        return t.contiguous()
    t.data = t.data.contiguous()
    return t


def place(t):
    return (t.data_ptr(), t.shape, t.stride())


def overlap(x, t):
    ends = [(u.data_ptr(), u.data_ptr() + u.element_size() * (1 + sum((n - 1) * s for n, s in zip(u.shape, u.stride())))) for u in (x, t)]
    return x.numel() > 0 and t.numel() > 0 and max(ends[0][0], ends[1][0]) < min(ends[0][1], ends[1][1])


def in_place(op, x, others):
    """The arguments of a write, as PyTorch takes them: of what lies where x lies, but is not x, a copy."""
    # To itself PyTorch copies nothing, and refuses nothing.
    if (op in REFUSE_EXPANDED or op == "copy_" and others[0] is x) and any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride())):
        raise RuntimeError("more than one element of the written-to tensor")
    copied = [overlap(x, t) and (op.startswith(("index", "scatter")) or place(t) != place(x)) for t in others]
    if any(copied) and op in ("mul_", "addcmul_", "atan2_") and torch.is_grad_enabled():
        raise RuntimeError("not compared: the copy would be saved in the place of its argument")
    return [t.clone() if copy else t for t, copy in zip(others, copied)]


CHECKPOINTS = {
    "smooth": lambda x, y: (x.sin() * y.tanh()).exp(), "writes": writes,
    "views": lambda x, y: (x.reshape(-1) * y.reshape(-1)).reshape(x.shape).tanh(), "product": lambda x, y: x * y,
}

OPS = {
    "elu_": lambda x: F.elu(x, inplace=True),
    "silu": F.silu, "softplus": F.softplus, "gelu": F.gelu, "elu": F.elu, "logSigmoid": F.logsigmoid, "leakyRelu": lambda x: F.leaky_relu(x, 0.01),
    "leakyRelu_": lambda x: F.leaky_relu_(x, 0.01), "contiguous": lambda x: x.contiguous(),
    "mulNumber": times, "addNumber": lambda x, n: x + n, "mulNumber_": times_, "addNumber_": lambda x, n: x.add_(n),
    "fill_": lambda x, n: first_of_expanded(x).fill_(n), "zero_": lambda x: first_of_expanded(x).zero_(),
    "to": lambda x, dtype: x.to(DTYPES[dtype]), "where": lambda x, y: torch.where(x > y, x * 2, y),
    "addcmul": lambda x, y: x.addcmul(y, x), "addcmul_": lambda x, y: x.addcmul_(y, y), "lerp": lambda x, y: wider(x, y).lerp(wider(y, x), 0.3), "lerp_": lambda x, y: x.lerp_(y.to(x.dtype), 0.3),
    "sum": lambda x, dim, keep: x.sum(dim, keepdim=keep), "mean": lambda x, dim, keep: x.mean(dim, keepdim=keep),
    "prod": lambda x, dim, keep: x.prod(dim, keepdim=keep) * 1, "cumprod": lambda x, dim: x.cumprod(dim) * 1, "amax": lambda x, dim, keep: x.amax(dim, keepdim=keep),
    "logSumExp": lambda x, dim, keep: x.logsumexp(dim, keepdim=keep), "logSoftmax": lambda x, dim: x.log_softmax(dim),
    "cat": lambda x, y, dim: torch.cat([x, y], dim), "stack": lambda x, y, dim: torch.stack([x, y], dim), "flip": lambda x, dim: x.flip(dim),
    "gather": lambda x, dim, shape, index: (x * 1).gather(dim, ints(index, shape)), "indexSelect": lambda x, dim, index: x.index_select(dim, ints(index)),
    "scatter": scatter_last(torch.Tensor.index_put), "scatter_": scatter_last(torch.Tensor.index_put_),
    "scatterAdd": lambda x, y, dim, shape, index: x.scatter_add(dim, ints(index, shape), y),
    "scatterAdd_": lambda x, y, dim, shape, index: x.scatter_add_(dim, ints(index, shape), y),
    "indexAdd": lambda x, y, dim, index: x.index_add(dim, ints(index), y * 1), "indexAdd_": lambda x, y, dim, index: x.index_add_(dim, ints(index), y * 1),
    "indexPut": put_last(torch.Tensor.index_put), "indexPut_": put_last(torch.Tensor.index_put_),
    "indexFill": lambda x, dim, index, value: x.index_fill(dim, ints(index), value),
    "indexFill_": lambda x, dim, index, value: x.index_fill_(dim, ints(index), value),
    "maskedFill": lambda x, mask, value: x.masked_fill(ints(mask, x.shape).bool(), value),
    "maskedFill_": lambda x, mask, value: x.masked_fill_(ints(mask, x.shape).bool(), value),
    "slice": lambda x, dim, start, end, step: x[(slice(None),) * dim + (slice(start, end, step),)],
    "split": pieces, "chunk": lambda x, count, dim: pieces(x, -(-x.shape[dim] // count), dim),
    "unbind": lambda x, dim: [x.select(dim, i) for i in range(x.shape[dim])], "chain": chain,
    "requiresGrad_": lambda x, flag: x.requires_grad_(flag), "loss": lambda *xs: sum(((x.to(torch.float64) * ramp(x.to(torch.float64))).sum() for x in xs), torch.zeros((), dtype=torch.float64)),
}


VIEWS = ("narrow", "select", "slice", "transpose", "permute", "expand", "reshape", "view", "flatten", "unsqueeze", "squeeze", "split", "chunk", "unbind",
         "diagonal", "detach", "chain", "to", "contiguous")


def finite(x):
    return [v if math.isfinite(v) else None for v in x.detach().reshape(-1).tolist()]


def attempt(get):
    try:
        return get()
    except RuntimeError:
        return None


def look(x):
    return {"values": finite(x.data), "requiresGrad": attempt(lambda: x.requires_grad), "isLeaf": attempt(lambda: x.is_leaf)}


def base_of(t):
    return t._base if t._is_view() else t


class Run:
    def __init__(self, program, copies=False):
        self.tensors, self.hooks, self.copies = {}, {}, copies
        # By a tensor's id, the node that its hooks are registered with.
        self.with_hooks = {}
        # Views made under noGrad, with their steps; other tensors, with the steps that wrote to them while recording.
        self.quiet, self.recorded = [], []
        for leaf in program["leaves"]:
            t = torch.tensor(leaf["data"], dtype=DTYPES[leaf["dtype"]]).reshape(leaf["shape"]).detach()
            self.tensors[leaf["id"]] = t.clone().requires_grad_(leaf["requiresGrad"])

    def all(self, program):
        outcomes, over = [], False
        for i, step in enumerate(program["steps"]):
            self.at = i
            args = [self.tensors[id] for id in step["args"] if id in self.tensors]
            there = len(args) > 0 if step["op"] == "loss" else len(args) == len(step["args"])
            if over or not there:
                outcomes.append(None)
                continue
            try:
                quiet = step.get("quiet", False)
                # A custom function that needs no gradient runs under noGrad: what it returns of a view that was made there is another one.
                with torch.set_grad_enabled(not quiet):
                    needs_grad = any(self.look(t)["requiresGrad"] for t in args)
                    late = step["op"] in VIEWS and step["op"] != "detach" and any(self.late(t) for t in args) or step["op"].startswith("custom:") and not needs_grad and any(self.late(t) for t in args)
                gives_history = args and self.look(args[0])["requiresGrad"] or needs_grad and not quiet
                with torch.set_grad_enabled(not (quiet or late)):
                    made = self.step(i, step, args, late)
                if step["op"].endswith("_") and step["op"] not in ("detach_", "requiresGrad_") and not quiet and needs_grad:
                    self.recorded.append((base_of(args[0]), i))
                if step["op"] in ("custom:Same", "custom:Passes") and not gives_history:
                    # Nothing is recorded, so the argument that it gives back is itself.
                    made[0] = args[0]
                if quiet or late:
                    shared = [t.storage().data_ptr() for t in args]
                    self.quiet += [(t, i) for t in made if t is not None and step["op"] != "detach" and not any(t is arg for arg in args)
                                   and t._is_view() and t.storage().data_ptr() in shared]
                for id, t in zip(step["outs"], made):
                    if t is not None:
                        self.tensors[id] = t
                outcomes.append([t if t is None else self.look(t) for t in ([args[0]] if step["op"].endswith("_") else made)])
            except Exception as error:
                outcomes.append({"error": kind(str(error)), "text": str(error).split("\n")[0]})
                over = step["op"] in ("backward", "grad")
        end = {}
        for id, t in self.tensors.items():
            end[id] = self.look(t)
            if not over:
                g = attempt(lambda: t.grad)
                end[id]["grad"] = None if g is None else finite(g)
        return {"steps": outcomes, "end": end, "hooks": {} if over else self.hooks}

    def quiet_since(self, t):
        return next((i for other, i in self.quiet if t is other), None)

    def wrote_since(self, t, since):
        return any(i > since and base is base_of(t) for base, i in self.recorded)

    def readable(self, t):
        """Views made under noGrad are constants until their base is written; to PyTorch they are leaves that nobody has asked for."""
        since = self.quiet_since(t)
        if since is None:
            return t
        if torch.is_grad_enabled() and self.wrote_since(t, since):
            raise RuntimeError("A view was created in no_grad mode")
        return t.detach()

    def late(self, t):
        self.readable(t)
        return self.quiet_since(t) is not None

    def look(self, t):
        seen = look(t)
        since = self.quiet_since(t)
        return seen if since is None else {**seen, "requiresGrad": self.wrote_since(t, since), "isLeaf": None}

    def step(self, i, step, args, late):
        op, attrs, x = step["op"], step["attrs"], args[0]
        if op == "hook":
            self.hook(i, x, attrs[0])
            return []
        if op in ("backward", "grad"):
            p = attrs[0]
            given = ramp(x) if p["gradient"] else None
            keep = p["retain"] or p["create"] or self.copies
            if op == "grad":
                found = torch.autograd.grad(x, args[1:], given, retain_graph=keep, create_graph=p["create"], allow_unused=p["unused"])
                return [g if g is None else g.clone(memory_format=torch.contiguous_format) for g in found]
            torch.autograd.backward(x, given, retain_graph=keep, create_graph=p["create"], inputs=args[1:] or None)
            return []
        if op == "retainGrad":
            x.retain_grad()
            return []
        if op == "detach_" and not x._is_view() and x.grad_fn is not None and not x.retains_grad:
            args[0] = self.renamed(x, x.detach())
            return []
        if op == "clearGrad":
            x.grad = None
            return []
        if op == "readGrad":
            return [] if x.grad is None else [x.grad.clone(memory_format=torch.contiguous_format)]
        if op.endswith("_"):
            # A view of what requires grad only since a write is a leaf to PyTorch until its history is looked at.
            attempt(lambda: x.grad_fn)
            args = [x, *in_place(op, x, [self.readable(t) for t in args[1:]])]
        elif op not in VIEWS and torch.is_grad_enabled():
            args = [self.readable(t) for t in args]
        if op.startswith("custom:"):
            Run.recording = torch.is_grad_enabled() and any(t.requires_grad for t in args)
            made = globals()[op[7:]].apply(*args)
            made = made[:1] if op == "custom:Marked" else made
        elif op.startswith("checkpoint:"):
            made = checkpoint(CHECKPOINTS[op[11:]], *args, use_reentrant=False) if torch.is_grad_enabled() else CHECKPOINTS[op[11:]](*args)
        elif op in OPS:
            made = OPS[op](*args, *attrs)
        else:
            made = getattr(torch.Tensor, op)(*args, *attrs)
        if op.endswith("_"):
            return []
        made = list(made) if isinstance(made, (tuple, list)) else [made]
        # Results are dense and in order; PyTorch's have the order of their arguments, and a reshape of them is a copy or a view accordingly.
        shared = [t.storage().data_ptr() for t in args]
        return made if op in VIEWS and op != "to" else [t if t.is_contiguous() or t.storage().data_ptr() in shared else in_order(t) for t in made]

    def renamed(self, old, new):
        """Puts `new`, which has the memory of `old`, in its place."""
        new.grad = old.grad
        self.tensors = {id: new if t is old else t for id, t in self.tensors.items()}
        return new

    def hook(self, i, x, kind):
        def run(g):
            if g is None:
                return None
            self.hooks.setdefault(i, []).append({"at": self.at, "values": finite(g)})
            if kind == "raise":
                raise RuntimeError("raised by a hook")
            return g * 2 if kind == "double" else None
        # PyTorch 1.13 adds a hook that is registered after a write to those of the old value as well.
        if x._backward_hooks is not None and self.with_hooks.get(id(x)) is not x.grad_fn:
            x._backward_hooks = None
        x.register_hook(run)
        self.with_hooks[id(x)] = x.grad_fn


def refuses_saved(step, made):
    """Whether PyTorch has refused the step for what it has saved. A view that a pass finds outdated can be such a one, too."""
    return made is not None and "error" in made and (made["error"] in ("modified", "freed") or made["error"] == "view" and step["op"] in ("backward", "grad"))


print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    for program in json.loads(line):
        outcome = Run(program).all(program)
        if any(refuses_saved(step, made) for step, made in zip(program["steps"], outcome["steps"])):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
                outcome["copied"] = Run(program, copies=True).all(program)
        print(json.dumps(outcome), flush=True)
