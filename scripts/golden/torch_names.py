"""The public names of PyTorch by kind, as JSON on stdout: what docs/pytorch.md compares ours with. `npm run pytorch` reads it."""

import inspect
import json
import sys

import torch
import torch.distributed.optim


def classes(module, base):
    return [name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, base) and value is not base]


def documented(module):
    """Functions with a text of their own: internal ones of the C++ side have none."""
    return [name for name in dir(module) if callable(getattr(module, name)) and not inspect.isclass(getattr(module, name)) and getattr(module, name).__doc__]


def public(names):
    return sorted({name for name in names if not name.startswith('_')})


def in_place(name):
    return name.endswith('_')


schedulers = torch.optim.lr_scheduler
functional = public(name for name in documented(torch.nn.functional) if getattr(torch.nn.functional, name) not in (torch.nn.functional.boolean_dispatch,))
# What is built in, and the few that are Python around it; no switches of back ends and no types.
operations = [name for name in documented(torch) if inspect.isbuiltin(getattr(torch, name)) or getattr(torch, name).__module__ == 'torch.functional']
names = {
    'version': torch.__version__,
    'torch.nn': public(classes(torch.nn, torch.nn.Module)),
    'torch.nn.functional': [name for name in functional if not in_place(name)],
    'torch.nn.init': [name for name in public(documented(torch.nn.init)) if in_place(name)],
    'torch.nn.utils': public(documented(torch.nn.utils)),
    'torch.optim': public(classes(torch.optim, torch.optim.Optimizer)),
    'torch.optim.lr_scheduler': public(name for name, value in vars(schedulers).items() if inspect.isclass(value) and value.__module__ == schedulers.__name__),
    'torch.utils.data': public(name for name, value in vars(torch.utils.data).items() if inspect.isclass(value)),
    'torch': [name for name in public(operations) if not in_place(name)],
    'torch.distributed': public(
        name
        for name, value in vars(torch.distributed).items()
        # Its obsolete `reduce_op` warns when it is read.
        if name != 'reduce_op' and getattr(value, '__module__', '') == 'torch.distributed.distributed_c10d' and value.__doc__
    ),
    'torch.nn.parallel': public(classes(torch.nn.parallel, torch.nn.Module)),
    'torch.distributed.optim': public(name for name, value in vars(torch.distributed.optim).items() if inspect.isclass(value)),
    'torch.linalg': public(documented(torch.linalg)),
    'torch.fft': public(documented(torch.fft)),
    'torch.special': public(documented(torch.special)),
}
json.dump(names, sys.stdout)
