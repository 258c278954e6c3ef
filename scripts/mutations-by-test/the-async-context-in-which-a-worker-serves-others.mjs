/** The async context in which a worker serves others. */
import { t } from './mutation.mjs'

export const theAsyncContextInWhichAWorkerServesOthers = [
  t(
    'pump-in-wakers-context',
    'packages/rpc/src/calls/async-context.sim.test.ts',
    'RPC-58: the async context of what is served nor of a program',
    'packages/actor/src/pump.ts',
    'this.home.runInAsyncScope(this.run, this)',
    'this.run()',
    'a served call finds the AsyncLocalStorage of the program that woke the worker',
  ),
  t(
    'pump-items-in-wakers-context',
    'packages/actor/src/pump.test.ts',
    'Pump PU-13',
    'packages/actor/src/pump.ts',
    'this.home.runInAsyncScope(this.run, this)',
    'this.run()',
    'an item runs in the async context of the code that woke the pump',
  ),
  t(
    'enter-with-stays',
    'packages/rpc/src/calls/async-context.sim.test.ts',
    'RPC-58: the async context of what is served a store that',
    'packages/base/src/scope.ts',
    "return storage.run(scope, () => new AsyncResource('Scope').runInAsyncScope(fn, undefined, ...args))",
    'return storage.run(scope, fn, ...args)',
    'a store that a served function enters stays for the calls after it',
  ),
  t(
    'hook-enters-for-others',
    'packages/dist-autograd/src/engine/hooks.sim.test.ts',
    'DA-59 hooks DA-87 on another worker',
    'packages/dist-autograd/src/engine/ready-nodes.ts',
    'next = stores === null ? inOwnScope(scope, run)',
    'next = stores === null ? inScope(scope, run)',
    "a store that a hook of another worker's pass enters stays for the pass after it",
  ),
  t(
    'inlined-in-callers-context',
    'packages/testing/src/inlined/inlined.sim.test.ts',
    'TK-87',
    'packages/testing/src/inlined/inlined-caller.ts',
    'return this.home.runInAsyncScope(() => inOwnScope(scope, fn, ...args))',
    'return inOwnScope(scope, fn, ...args)',
    'in an inlined program a served function finds the AsyncLocalStorage of its caller',
  ),
]
