/** What a caller constructs, and what an error from elsewhere shows first. */
import { t } from './mutation.mjs'

export const whatACallerConstructs = [
  t(
    'optimizer-made-at-caller',
    'packages/parallel/src/optimizer-state.sim.test.ts',
    'OPT-17 the class is constructed',
    'packages/parallel/src/optimizer-groups.ts',
    'if (this.model !== undefined) this.learn(all.length - added.length)',
    'this.learn(all.length - added.length)',
    'a distributed optimizer constructs its class on a worker that owns no parameter, though nobody asks for settings',
  ),
  t(
    'optimizer-made-again-to-check',
    'packages/parallel/src/optimizer-state.sim.test.ts',
    'OPT-17 the class is constructed',
    'packages/parallel/src/optimizer-groups.ts',
    'if (this.model === undefined) this.learn(0)',
    'this.learn(0)',
    'each question for settings constructs an optimizer at the caller',
  ),
  t(
    'initial-settings-sent-again',
    'packages/parallel/src/optimizer-state.sim.test.ts',
    'OPT-17 what is written',
    'packages/parallel/src/optimizer-groups.ts',
    '(has[own] ?? all.initial[index])',
    'has[own]',
    'the first write to a setting replaces all settings of the owners by those of the caller',
  ),
  t(
    'first-line-without-worker',
    'packages/rpc/src/calls/errors.sim.test.ts',
    'RPC-54: the first line',
    'packages/base/src/await-stack.ts',
    'const head = isNamed ? stack',
    'const head = stack.length > 0 ? stack',
    'the first line of an error of a callee does not say on which worker it arose',
  ),
  t(
    'first-line-names-relay',
    'packages/rpc/src/calls/errors.sim.test.ts',
    'RPC-54: the first line',
    'packages/base/src/await-stack.ts',
    'workers?.[0]?.name ?? worker',
    'worker',
    'the first line of an error names the worker that passed it on',
  ),
]
