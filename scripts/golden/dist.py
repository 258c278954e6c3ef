"""Golden gradients of distributed programs, from PyTorch's own torch.distributed.rpc and dist_autograd: four processes, and every program below
has its twin of the same name in packages/testing-cases/src/cases.

Run with any PyTorch >= 1.13 that has distributed:  python3 scripts/golden/dist.py   (writes packages/testing-cases/golden/dist.json)

Numbers after names are those of PyTorch's dist_autograd_test.py. A program runs as worker0 and calls the others in turn; it returns the
results of worker0 and of the others.
"""
import json
import os
import pathlib
import socket

import numpy as np
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch.distributed.optim import DistributedOptimizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/testing-cases/golden/dist.json"
WORKERS = 4
PROGRAMS = {}


def program(**inputs):
    """Inputs by name: a shape, or a tensor; float32 with three decimals, from the seed that is the program's name."""

    def register(fn):
        PROGRAMS[fn.__name__] = (inputs, fn)
        return fn

    return register


def leaf(t):
    return t.clone().requires_grad_()


def gradients(context_id, **leaves):
    """Of the leaves that have one; the program's twin must have the same keys."""
    grads = dist_autograd.get_gradients(context_id)
    assert len(grads) == sum(t in grads for t in leaves.values()), "a gradient that no name was given to"
    return {name: grads[t] for name, t in leaves.items() if t in grads}


# ---- what runs on the other workers ----

HELD = {}


def hold_leaf(name, t):
    """This worker's own parameter, and a reference to it."""
    HELD[name] = leaf(t)
    return HELD[name]


def held(name):
    return HELD[name]


def held_value(name):
    return HELD[name].detach()


def held_gradient(context_id, name):
    return dist_autograd.get_gradients(context_id)[HELD[name]]


def my_add(t1, t2):
    return torch.add(t1, t2)


def mixed_requires_grad_branch(t1, t2):
    return t1 - t2 if t2.requires_grad else t1 * t2


def nested_on(t1, t2, dst):
    t3, t4 = t1 * t2, t1 + t2
    res = rpc.rpc_sync(dst, my_add, args=(t3, t4))
    return t1 * t2 * t3 * t4 * res


def add_to_rref(ref, t):
    return torch.add(ref.local_value(), t)


def add_to_rref_from_third(owner, ref, t):
    return rpc.rpc_sync(owner, add_to_rref, args=(ref, t))


def chain(t, left, other, me):
    return t if left == 0 else rpc.rpc_sync(other, chain, args=(t * 1.5, left - 1, me, other))


def train_with(ref, t2, owner):
    """A trainer of trainer_ps: its own context, the parameter elsewhere; gives the owner's gradient and its own."""
    t2 = leaf(t2)
    with dist_autograd.context() as context_id:
        dist_autograd.backward(context_id, [rpc.rpc_sync(owner, add_to_rref, args=(ref, t2)).mul(t2).sum()])
        return rpc.rpc_sync(owner, held_gradient, args=(context_id, "trainer_ps")), dist_autograd.get_gradients(context_id)[t2]


# ---- the design note and the documentation ----

M = (3, 3)


@program(t1=M, t2=M, t4=M)
def design_note(t1, t2, t4):
    t1, t2, t4 = leaf(t1), leaf(t2), leaf(t4)
    with dist_autograd.context() as context_id:
        t3 = rpc.rpc_sync("worker1", torch.add, args=(t1, t2))
        loss = torch.mul(t3, t4).sum()
        dist_autograd.backward(context_id, [loss])
        return dict(gradients(context_id, t1=t1, t2=t2, t4=t4), loss=loss)


def optimized(t1, t2, steps, weigh, **options):
    ref1 = rpc.remote("worker1", hold_leaf, args=("p1", t1))
    ref2 = rpc.remote("worker1", hold_leaf, args=("p2", t2))
    out = {}
    optimizer = DistributedOptimizer(torch.optim.SGD, [ref1, ref2], **options)
    for step in range(steps):
        with dist_autograd.context() as context_id:
            loss = weigh(ref1.to_here(), ref2.to_here())
            dist_autograd.backward(context_id, [loss])
            out[f"g1_{step}"] = rpc.rpc_sync("worker1", held_gradient, args=(context_id, "p1"))
            out[f"g2_{step}"] = rpc.rpc_sync("worker1", held_gradient, args=(context_id, "p2"))
            optimizer.step(context_id)
            out[f"loss_{step}"] = loss
            out[f"p1_{step}"] = rpc.rpc_sync("worker1", held_value, args=("p1",)).clone()
            out[f"p2_{step}"] = rpc.rpc_sync("worker1", held_value, args=("p2",)).clone()
    return out


@program(t1=M, t2=M)
def end_to_end(t1, t2):
    return optimized(t1, t2, 1, lambda a, b: (a + b).sum(), lr=0.05)


@program(t1=M, t2=M)
def end_to_end_momentum(t1, t2):
    return optimized(t1, t2, 3, lambda a, b: (a * b).sum(), lr=0.05, momentum=0.9)


# ---- dist_optimizer_test.py ----

WITH_NONE_GRADS = ("sgd", "rmsprop", "rprop", "adadelta")


class MyModule:
    """PyTorch's: one weight. The module of the optimizer's tests, on the worker that made it."""

    def __init__(self, w, requires_grad):
        self.w = w.clone().requires_grad_(requires_grad)

    def forward(self, x):
        return torch.mm(self.w, x)


def hold_module(name, w, requires_grad):
    HELD[name] = MyModule(w, requires_grad)


def module_weight_ref(name):
    return rpc.RRef(HELD[name].w)


def module_forward(name, x):
    return HELD[name].forward(x)


def module_value(name):
    return HELD[name].w.detach().clone()


def dist_optim(cls, second_requires_grad, w, t1, t2, **options):
    rpc.rpc_sync("worker1", hold_module, args=("m1", w, True))
    rpc.rpc_sync("worker2", hold_module, args=("m2", w, second_requires_grad))
    params = [rpc.rpc_sync(worker, module_weight_ref, args=(name,)) for worker, name in (("worker1", "m1"), ("worker2", "m2"))]
    optimizer = DistributedOptimizer(cls, params, **options)
    out = {}
    for step in range(3):
        with dist_autograd.context() as context_id:
            output1 = rpc.rpc_sync("worker1", module_forward, args=("m1", t2))
            output2 = rpc.rpc_sync("worker2", module_forward, args=("m2", output1))
            dist_autograd.backward(context_id, [torch.add(output2, t1).sum()])
            optimizer.step(context_id)
            out[f"w1_{step}"] = rpc.rpc_sync("worker1", module_value, args=("m1",))
            out[f"w2_{step}"] = rpc.rpc_sync("worker2", module_value, args=("m2",))
    return out


OPTIMIZERS = {
    "adagrad": (torch.optim.Adagrad, dict(lr=0.05)),
    "adam": (torch.optim.Adam, dict(lr=1e-2, amsgrad=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.05, amsgrad=True)),
    "sgd": (torch.optim.SGD, dict(lr=0.05)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=1e-3, momentum=1, weight_decay=1, nesterov=True)),
    "adadelta": (torch.optim.Adadelta, dict(rho=0.95)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.05)),
    "adamax": (torch.optim.Adamax, dict(lr=0.05)),
    "rprop": (torch.optim.Rprop, dict(lr=0.05)),
}


def register_optimizer(name, cls, options, frozen):
    def run(w, t1, t2):
        return dist_optim(cls, not frozen, w, t1, t2, **options)

    run.__name__ = f"dist_optim_{name}{'_none_grads' if frozen else ''}"
    program(w=M, t1=M, t2=M)(run)


for optimizer_name, (optimizer_class, optimizer_options) in OPTIMIZERS.items():
    register_optimizer(optimizer_name, optimizer_class, optimizer_options, False)
    if optimizer_name in WITH_NONE_GRADS:
        register_optimizer(optimizer_name, optimizer_class, optimizer_options, True)


# ---- dist_autograd_test.py ----


def simple(t1, t2, run):
    t1, t2 = leaf(t1), leaf(t2)
    with dist_autograd.context() as context_id:
        loss = run(t1, t2).sum()
        dist_autograd.backward(context_id, [loss])
        return dict(gradients(context_id, t1=t1, t2=t2), loss=loss)


@program(t1=M, t2=M)
def backward_simple(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.rpc_sync("worker1", torch.add, args=(a, b)))


@program(t1=M, t2=M)
def backward_simple_remote(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.remote("worker1", torch.add, args=(a, b)).to_here())


@program(t1=M, t2=M)
def backward_simple_self(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.rpc_sync("worker0", torch.add, args=(a, b)))


@program(t1=M, t2=M)
def backward_simple_python_udf(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.rpc_sync("worker1", my_add, args=(a, b)))


@program(t1=(4, 6), t2=(6, 5), t3=(5, 7), t4=(7, 9))
def backward_different_tensor_dims(t1, t2, t3, t4):
    t1, t3 = leaf(t1), leaf(t3)
    with dist_autograd.context() as context_id:
        val = rpc.rpc_sync("worker1", torch.matmul, args=(t1, t2))
        val = rpc.rpc_sync("worker2", torch.matmul, args=(val, t3))
        loss = rpc.rpc_sync("worker3", torch.matmul, args=(val, t4)).sum()
        dist_autograd.backward(context_id, [loss])
        return dict(gradients(context_id, t1=t1, t3=t3), loss=loss)


@program(t1=M, t2=M, t3=M, t4=M, t5=M)
def backward_multiple_round_trips(t1, t2, t3, t4, t5):
    t1, t3, t5 = leaf(t1), leaf(t3), leaf(t5)
    with dist_autograd.context() as context_id:
        val = rpc.rpc_sync("worker1", torch.add, args=(t1, t2))
        val = rpc.rpc_sync("worker2", torch.mul, args=(t3, val))
        s1 = rpc.rpc_sync("worker3", torch.stack, args=([t4, val],))
        s2 = rpc.rpc_sync("worker1", torch.stack, args=([t5, val],))
        val = rpc.rpc_sync("worker2", torch.bmm, args=(s1, s2))
        val = rpc.rpc_sync("worker3", torch.matmul, args=(val, val))
        loss = val.sum()
        dist_autograd.backward(context_id, [loss])
        return dict(gradients(context_id, t1=t1, t3=t3, t5=t5), loss=loss)


@program(t1=M, t2=M, t3=M)
def backward_unused_tensors(t1, t2, t3):
    t1, t2, t3 = leaf(t1), leaf(t2), leaf(t3)
    with dist_autograd.context() as context_id:
        s = rpc.rpc_sync("worker1", torch.stack, args=([t1, t2, t3],))
        val = rpc.rpc_sync("worker2", torch.matmul, args=(torch.narrow(s, 0, 0, 1), torch.narrow(s, 0, 2, 1)))
        loss = val.sum()
        dist_autograd.backward(context_id, [loss])
        return dict(gradients(context_id, t1=t1, t2=t2, t3=t3), loss=loss)


@program(t1=M, t2=M)
def backward_multiple_roots(t1, t2):
    t1, t2 = leaf(t1), leaf(t2)
    with dist_autograd.context() as context_id:
        r1 = rpc.rpc_sync("worker1", torch.add, args=(t1, t2)).sum()
        r2 = rpc.rpc_sync("worker2", torch.mul, args=(t1, t2)).sum()
        r3 = rpc.rpc_sync("worker3", torch.cos, args=(t1,)).sum()
        r4 = rpc.rpc_sync("worker1", torch.div, args=(t1, t2)).sum()
        dist_autograd.backward(context_id, [r1, r2, r3, r4])
        return gradients(context_id, t1=t1, t2=t2)


@program(t1=torch.float32, t2=torch.float64)
def backward_different_dtypes(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.rpc_sync("worker1", torch.add, args=(a, b)))


@program(t1=M, t2=M)
def backwards_nested_python_udf(t1, t2):
    return simple(t1, t2, lambda a, b: rpc.rpc_sync("worker1", nested_on, args=(a, b, "worker2")))


@program(t1=M, t2=M)
def mixed_requires_grad(t1, t2):
    t1 = leaf(t1)
    with dist_autograd.context() as context_id:
        ret = rpc.rpc_sync("worker1", mixed_requires_grad_branch, args=(t1, t2))
        dist_autograd.backward(context_id, [ret.sum()])
        return dict(gradients(context_id, t1=t1, t2=t2), ret=ret)


@program(p=M)
def grad_only_on_return_value(p):
    rpc.rpc_sync("worker1", hold_leaf, args=("grad_only", p))
    with dist_autograd.context() as context_id:
        dist_autograd.backward(context_id, [rpc.rpc_sync("worker1", held, args=("grad_only",)).sum()])
        assert not dist_autograd.get_gradients(context_id)
        return {"there": rpc.rpc_sync("worker1", held_gradient, args=(context_id, "grad_only"))}


@program(t1=M, t2=M)
def backward_without_rpc(t1, t2):
    return simple(t1, t2, torch.add)


@program(t1=M, t2=M)
def backward_verify_hooks(t1, t2):
    t1, t2 = leaf(t1), leaf(t2)
    t1.register_hook(lambda grad: grad * 2)
    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync("worker1", torch.matmul, args=(t1, t2)).sum()
        dist_autograd.backward(context_id, [loss])
        return gradients(context_id, t1=t1, t2=t2)


@program(p=M, t2=M)
def backward_rref(p, t2):
    t2, ref = leaf(t2), rpc.remote("worker1", hold_leaf, args=("backward_rref", p))
    with dist_autograd.context() as context_id:
        loss = rpc.remote("worker1", add_to_rref, args=(ref, t2)).to_here().sum()
        dist_autograd.backward(context_id, [loss])
        there = rpc.rpc_sync("worker1", held_gradient, args=(context_id, "backward_rref"))
        return dict(gradients(context_id, t2=t2), there=there, loss=loss)


@program(p=M, t2=M)
def backward_rref_nested(p, t2):
    t2, ref = leaf(t2), rpc.remote("worker2", hold_leaf, args=("backward_rref_nested", p))
    with dist_autograd.context() as context_id:
        loss = rpc.remote("worker1", add_to_rref_from_third, args=("worker2", ref, t2)).to_here().mul(t2).sum()
        dist_autograd.backward(context_id, [loss])
        there = rpc.rpc_sync("worker2", held_gradient, args=(context_id, "backward_rref_nested"))
        return dict(gradients(context_id, t2=t2), there=there, loss=loss)


@program(p=M, a=M, b=M, c=M)
def trainer_ps(p, a, b, c):
    ref = rpc.remote("worker0", hold_leaf, args=("trainer_ps", p))
    ref.to_here()
    trainers = [rpc.rpc_async(f"worker{i + 1}", train_with, args=(ref, t, "worker0")) for i, t in enumerate((a, b, c))]
    out = {}
    for name, future in zip("abc", trainers):
        out[f"{name}_there"], out[name] = future.wait()
    return out


@program(t=(3,))
def ping_pong(t):
    t = leaf(t)
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("worker1", chain, args=(t, 8, "worker0", "worker1"))
        dist_autograd.backward(context_id, [(y * y).sum()])
        return dict(gradients(context_id, t=t), y=y)


@program(t1=M, t2=M)
def two_passes(t1, t2):
    """Gradients of two passes over one graph are summed in the context."""
    t1, t2 = leaf(t1), leaf(t2)
    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync("worker1", torch.mul, args=(t1, t2)).cos().sum()
        dist_autograd.backward(context_id, [loss], retain_graph=True)
        dist_autograd.backward(context_id, [loss])
        return gradients(context_id, t1=t1, t2=t2)


@program(t1=M, t2=M)
def backward_accumulate_grads(t1, t2):
    t1, t2 = leaf(t1), leaf(t2)
    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync("worker1", torch.matmul, args=(t1, t2)).sum()
        dist_autograd.backward(context_id, [loss], retain_graph=True)
        dist_autograd.backward(context_id, [loss])
        return gradients(context_id, t1=t1, t2=t2)


BAG_INDICES = (1, 2, 4, 5, 4, 3, 2, 9)
BAG_OFFSETS = (0, 4)


def bag(name, indices, offsets, weights):
    return torch.nn.functional.embedding_bag(
        indices, HELD[name], offsets, mode="sum", sparse=True, per_sample_weights=weights
    )


def dense_gradient(context_id, name):
    grad = held_gradient(context_id, name)
    assert grad.is_sparse
    return grad.to_dense()


@program(table=(16, 16), weights=(8,))
def embedding_bag_with_no_grad_tensors(table, weights):
    """Sparse gradients of a remote table, of two passes."""
    rpc.rpc_sync("worker1", hold_leaf, args=("bag", table))
    weights = leaf(weights)
    with dist_autograd.context() as context_id:
        res = rpc.rpc_sync("worker1", bag, args=("bag", torch.tensor(BAG_INDICES), torch.tensor(BAG_OFFSETS), weights))
        dist_autograd.backward(context_id, [res.sum()], retain_graph=True)
        dist_autograd.backward(context_id, [res.sum()])
        there = rpc.rpc_sync("worker1", dense_gradient, args=(context_id, "bag"))
        return dict(gradients(context_id, weights=weights), there=there, res=res)


def linear_on(name, x):
    return torch.nn.functional.linear(x, HELD[name + ".w"], HELD[name + ".b"])


@program(x=(6, 5), w1=(5, 5), b1=(5,), w2=(5, 5), b2=(5,), w3=(5, 5), b3=(5,))
def gradients_synchronizations(x, w1, b1, w2, b2, w3, b3):
    """Three linear layers, each on a worker of its own."""
    layers = [("worker1", w1, b1), ("worker2", w2, b2), ("worker3", w3, b3)]
    for to, w, b in layers:
        rpc.rpc_sync(to, hold_leaf, args=("layer.w", w))
        rpc.rpc_sync(to, hold_leaf, args=("layer.b", b))
    with dist_autograd.context() as context_id:
        for to, _, _ in layers:
            x = rpc.rpc_sync(to, linear_on, args=("layer", x))
        dist_autograd.backward(context_id, [x.sum()])
        out = {"y": x}
        for i, (to, _, _) in enumerate(layers):
            out[f"w{i + 1}"] = rpc.rpc_sync(to, held_gradient, args=(context_id, "layer.w"))
            out[f"b{i + 1}"] = rpc.rpc_sync(to, held_gradient, args=(context_id, "layer.b"))
        return out


# ---- second derivatives: PyTorch has no distributed ones, so the numbers are of its local engine ----


def penalized(leaves, loss, penalty):
    """What a pass with create_graph and one from a penalty over its gradients leave together."""
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    second = torch.autograd.grad(penalty(first), leaves, allow_unused=True)
    return [g if h is None else g + h for g, h in zip(first, second)]


@program(t1=M, t2=M)
def second_derivatives(t1, t2):
    """The sum of the squares of all gradients, of an operation elsewhere."""
    t1, t2 = leaf(t1), leaf(t2)
    loss = torch.tanh(t1 @ t2).sum()
    g1, g2 = penalized([t1, t2], loss, lambda grads: sum((g * g).sum() for g in grads))
    return dict(t1=g1, t2=g2, loss=loss)


@program(x=(4, 3), w=M, v=M)
def second_derivatives_of_parameters(x, w, v):
    """A gradient penalty of a discriminator: two layers, each on a worker of its own, with respect to the input."""
    x, w, v = leaf(x), leaf(w), leaf(v)
    loss = (torch.tanh(x @ w) @ v).pow(2).sum()
    gx, gw, gv = penalized([x, w, v], loss, lambda grads: (grads[0].norm(2, dim=1) - 1).pow(2).mean())
    return dict(x=gx, w=gw, v=gv, loss=loss)


@program(t=(3,))
def third_derivatives(t):
    t = leaf(t)
    loss = (t * t * t * t).sum()
    (g1,) = torch.autograd.grad(loss, [t], create_graph=True)
    (g2,) = torch.autograd.grad(g1.sum(), [t], create_graph=True)
    (g3,) = torch.autograd.grad(g2.sum(), [t])
    return dict(sum=g1 + g2 + g3, g3=g3)


# ---- running and writing ----


def made(name, inputs):
    torch.manual_seed(sum(map(ord, name)))
    out = {}
    for key, spec in inputs.items():
        shape, dtype = (M, spec) if isinstance(spec, torch.dtype) else (spec, torch.float32)
        # Away from 0, so that divisions are harmless; three decimals keep the file short.
        out[key] = (torch.rand(shape, dtype=torch.float64) + 0.1).mul(1000).round().div(1000).to(dtype)
    return out


def plain(t):
    t = torch.as_tensor(t).detach()
    numbers = t.flatten().numpy()
    # The shortest text that reads back as the same number of its dtype.
    values = [float(np.format_float_positional(x, unique=True)) for x in numbers]
    assert all(numbers.dtype.type(v) == x for v, x in zip(values, numbers))
    return {"dtype": str(t.dtype)[6:], "shape": list(t.shape), "data": [int(v) if v == int(v) else v for v in values]}


def worker(rank, port, out):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.set_num_threads(1)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=WORKERS)
    if rank == 0:
        cases = {}
        for name, (specs, fn) in PROGRAMS.items():
            inputs = made(name, specs)
            results = fn(**inputs)
            cases[name] = {"inputs": {k: plain(t) for k, t in inputs.items()}, "results": {k: plain(t) for k, t in results.items()}}
        out.put(cases)
    rpc.shutdown()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    context = mp.get_context("fork")
    queue = context.Queue()
    others = [context.Process(target=worker, args=(rank, free_port, queue)) for rank in range(WORKERS)]
    for process in others:
        process.start()
    cases = queue.get(timeout=300)
    for process in others:
        process.join()
    OUT.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(case, separators=(',', ':'))}" for name, case in cases.items())
    OUT.write_text(f'{{"torch":"{torch.__version__}","cases":{{\n{lines}\n}}}}\n')
    print(f"{len(cases)} programs -> {OUT}")
