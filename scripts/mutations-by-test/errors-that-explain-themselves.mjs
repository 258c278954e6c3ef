/** Errors that explain themselves, ends of links that are lost, and loads that are taken back in any case. */
import { t } from './mutation.mjs'

export const errorsThatExplainThemselves = [
  t(
    'lost-end-unnoted',
    'packages/cluster/src/membership/lost-ends.test.ts',
    'MEM-13 a worker that dies',
    'packages/cluster/src/membership/members.ts',
    '    for (const { info } of peers) others.add(info.id)\n',
    '',
    'the controller forgets whose ends of links are on their way',
  ),
  t(
    'lost-end-stays',
    'packages/cluster/src/membership/lost-ends.test.ts',
    'MEM-13 a notified worker',
    'packages/cluster/src/membership/peer-links.ts',
    "if (link?.abandon !== undefined) this.runtime.clock.setTimer(LOST_END_MS, () => link.abandon!('its thread has ended'))",
    '',
    'a worker keeps a link whose other end is lost',
  ),
  t(
    'own-code-explained',
    'packages/base/src/program-stack.test.ts',
    'CLU-120 nothing explains',
    'packages/base/src/program-stack.ts',
    'if (frames.length === 0 || first === 0) return',
    'if (frames.length === 0) return',
    'the command explains a code that the program has thrown itself',
  ),
  t(
    'required-again',
    'packages/base/src/builtin.real.test.ts',
    'CLU-122 a module of Node',
    'packages/base/src/builtin.ts',
    '    loaded.set(name, found)\n',
    '',
    'a timer requires a module again after jest has torn down the test file',
  ),
  t(
    'undo-within-limits',
    'packages/parallel/src/optimizer-state.sim.test.ts',
    'OPT-10',
    'packages/parallel/src/distributed-optimizer.ts',
    "optimizer.call('undoLoad', [load], limits)",
    "optimizer.call('undoLoad', [load], options)",
    'a load that was aborted is not taken back',
  ),
]
