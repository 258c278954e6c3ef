/**
 * The mutations of `npm run mutate` that a test catches: each takes one repair out again, by one exact change of a source file, and names the test file and the rule
 * (or the words) with which the names of its tests begin. `find` occurs once in the file. Those that a suite catches from a seed stand in `mutations.mjs`.
 *
 *   t(id, test, rule, file, find, replace, what)
 *
 * `test` and `file` are paths of sources, from the repository: a test of any lane, a module of a package or an app.
 */
export const MUTATIONS_BY_TEST = [
  // ---- files that others own, and folders that others may write
  // ---- the end of a worker, of a call, of a program
  // ---- pipelines and collectives
  // ---- replicas
  // ---- ranks that return
  // ---- what a peer may send
  t(
    'inflow-unbounded',
    'packages/rpc/src/authority/floods.sim.test.ts',
    'CRE-16, CRE-17, AUT-10: of CALL_CANCEL',
    'packages/rpc/src/core/inflow.ts',
    'this.waiting < OTHERS_WAITING_MAX &&',
    'this.waiting < 1e9 &&',
    'A peer may have any number of messages waiting beyond its windows',
  ),
  t(
    'inflow-refused-not-counted',
    'packages/rpc/src/authority/floods.sim.test.ts',
    'CRE-16, CRE-17, AUT-10: of CALL:',
    'packages/rpc/src/core/message-path.ts',
    "(item instanceof IncomingMessage || item.state === 'refused')",
    'item instanceof IncomingMessage',
    'Calls beyond the window count nowhere',
  ),
  t(
    'inflow-unreadable-not-counted',
    'packages/rpc/src/authority/floods.sim.test.ts',
    'CRE-16, CRE-17: of what cannot be read',
    'packages/rpc/src/core/message-path.ts',
    'inflow?.onReceived(0)',
    '',
    'What cannot be read is queued without a bound',
  ),
  t(
    'inflow-refusals-free',
    'packages/rpc/src/core/inflow.test.ts',
    'CRE-17',
    'packages/rpc/src/core/inflow.ts',
    'if (pauseMs === 0) return',
    'return',
    'A peer may be refused as often as it likes',
  ),
  t(
    'inflow-refused-calls-begin',
    'packages/rpc/src/core/inflow.test.ts',
    'CRE-17: so many at once',
    'packages/rpc/src/core/inflow.ts',
    'this.unreadTimer !== null || this.refusedTimer !== null',
    'this.unreadTimer !== null',
    'Calls that wait are refused though their peer is not read for refusals',
  ),
  t(
    'inflow-unread-served',
    'packages/rpc/src/authority/floods.sim.test.ts',
    'CRE-18: the calls of one that reads',
    'packages/rpc/src/core/message-path.ts',
    'peer.inflow.onCall()',
    '',
    'A peer that reads no answers is served on',
  ),
  t(
    'inflow-unread-keeps-link',
    'packages/rpc/src/authority/floods.sim.test.ts',
    'CRE-18: one that reads no answer',
    'packages/rpc/src/core/inflow.ts',
    '++this.refusedUnread > REFUSALS_MAX',
    '++this.refusedUnread > 1e9',
    'A peer that reads nothing and is refused over and over keeps its link',
  ),
  t(
    'mailbox-no-shares',
    'packages/actor/src/mailbox.test.ts',
    'MB-20 in lane',
    'packages/actor/src/mailbox.ts',
    'source.inLanes[joined]! >= SHARE_MAX',
    'source.inLanes[joined]! >= 1e9',
    'One source fills a lane in front of all others',
  ),
  t(
    'mailbox-holds-behind-the-end',
    'packages/actor/src/mailbox.test.ts',
    'MB-21 the end of a link',
    'packages/actor/src/mailbox.ts',
    'if (source.isHeld || source.ended) return',
    'if (source.isHeld) return',
    'The calls of a link that has ended are held for ever',
  ),
  t(
    'socket-pause-delivers',
    'packages/transport/src/socket/socket-link.real.test.ts',
    'SOCK-14',
    'packages/transport/src/socket/socket-link.ts',
    'const got = this.isPaused ? null : this.next()',
    'const got = this.next()',
    'A paused link delivers what it has read',
  ),
  t(
    'socket-pause-is-silence',
    'packages/transport/src/socket/socket-link.real.test.ts',
    'SOCK-14',
    'packages/transport/src/socket/socket-link.ts',
    'this.held !== null || this.isPaused) {',
    'this.held !== null) {',
    'A link that this end does not read is taken for dead',
  ),
  t(
    'session-pause-lost',
    'packages/transport/src/session/session.test.ts',
    'SES-25',
    'packages/transport/src/session/session.ts',
    'if (this.isPaused) carrier.setPaused?.(true)',
    '',
    'A new carrier of a paused session is read',
  ),
  t(
    'stream-items-unbounded',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'STR-11: a callee',
    'packages/rpc/src/calls/stream.ts',
    'if (this.items.length >= this.window) return false',
    '',
    'A callee fills its caller with items that nobody asked for',
  ),
  t(
    'stream-window-unbounded',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'STR-11: a window',
    'packages/rpc/src/calls/stream.ts',
    ' && window <= STREAM_WINDOW_MAX',
    '',
    'A caller may have a generator run without an end',
  ),
  t(
    'refused-method-keeps-id',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'RREF-36',
    'packages/rpc/src/core/message-path.ts',
    'this.references.forgetSubject(call.message)',
    '',
    'A method call that is refused keeps an entry for its value',
  ),
  t(
    'failed-method-keeps-id',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'RREF-36',
    'packages/rpc/src/calls/call-serving.ts',
    "if (outcome === 'error') messages.references.forgetSubject(call.message)",
    '',
    'A method call that has waited in vain for its value keeps an entry for it',
  ),
  t(
    'peer-value-as-text',
    'packages/rpc/src/authority/authority.sim.test.ts',
    'AUT-3 RPC-55',
    'packages/rpc/src/authority/authority-check.ts',
    'this.functionWant(plainText(list[0]),',
    'this.functionWant(String(list[0]),',
    'A name that a peer has made throws where its right is looked up',
  ),
  t(
    'peer-value-as-text-seen',
    'packages/rpc/src/worker/odd-messages.sim.test.ts',
    'RPC-55',
    'packages/rpc/src/observe/call-interceptors.ts',
    'functionName: plainText(args[1])',
    'functionName: String(args[1])',
    'A name that a peer has made throws while an interceptor looks',
  ),
  t(
    'init-url-says-more',
    'packages/cluster/src/init/init-method.test.ts',
    '{"initMethod"',
    'packages/cluster/src/init/init-method.ts',
    "const isPlain = more === '' && (url?.pathname === '' || url?.pathname === '/')",
    'const isPlain = true',
    'A password and a path of a TCP address are left out in silence',
  ),
  t(
    'init-file-of-host',
    'packages/cluster/src/init/init-method.test.ts',
    '{"initMethod"',
    'packages/cluster/src/init/init-method.ts',
    "url?.protocol === 'file:' && url.hostname === '' &&",
    "url?.protocol === 'file:' &&",
    "Node's own error for a file URL with a host",
  ),
  // ---- budgets
  // ---- checkpoints
]

function t(id, test, rule, file, find, replace, what) {
  return { id, test, rule, file, find, replace, what }
}
