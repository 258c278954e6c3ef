/** Frames of a session over a connection: heads with wrong numbers, lives and kinds. Delivered frames are compared with a model of two numbers. */
import type { Clock, Frame, Link, LinkReceiver } from '@postgrad/transport'
import { Session, SessionKind, sessionFrame } from '@postgrad/transport/internal'
import { EDGES, type Input, mutated, type Outcome, pick, promised, type Random, type Target } from './case.suite.js'

const SELF = 5
const PEER = 9
/** This end has sent so much: the peer may acknowledge it. */
const SENT = 2
const FRAMES_MAX = 6
const SESSION_BYTES = 32

/** Turns by hand; no timer is ever due. */
class Turns implements Clock {
  private readonly due: (() => void)[] = []

  now(): number {
    return 0
  }

  setTimer(): { cancel(): void } {
    return { cancel() {} }
  }

  defer(fn: () => void): void {
    this.due.push(fn)
  }

  run(): void {
    for (let i = 0; this.due.length > 0; i++) {
      promised(i < 1000, 'turns come to an end')
      this.due.shift()!()
    }
  }
}

class Carrier implements Link {
  closed = false
  sent = 0
  receiver: LinkReceiver | null = null

  open(receiver: LinkReceiver): void {
    this.receiver = receiver
  }

  send(): void {
    this.sent++
  }

  flush(): void {}

  poll(): number {
    return 0
  }

  close(): void {
    this.closed = true
  }
}

/** The last byte of a frame whose carrier says that it has overtaken others. */
const AHEAD = 8
const WINDOW = 1024

const head = (kind: number, seq: number, ack: number, from = PEER, to = SELF, last = 7): Uint8Array =>
  sessionFrame({ kind: kind as SessionKind, from, to, seq, ack }, { header: Uint8Array.of(last), segments: [] }).header

function make(random: Random): Input {
  let seq = 1
  return Array.from({ length: 1 + random.below(FRAMES_MAX) }, () => {
    const kind = pick(random, [SessionKind.DATA, SessionKind.DATA, SessionKind.DATA, SessionKind.ACK, SessionKind.END, random.below(256)])
    const number = () => pick(random, [...EDGES, -1, 0.5, 2 ** 53, 2 ** 53 - 1, Number.NaN, Number.POSITIVE_INFINITY])
    const which = kind === SessionKind.ACK ? 0 : random.below(3) === 0 ? number() : seq++
    const bytes = head(
      kind,
      which,
      random.below(3) === 0 ? number() : random.below(SENT + 1),
      random.below(8) === 0 ? random.below(12) : PEER,
      random.below(8) === 0 ? random.below(12) : SELF,
      random.below(3) === 0 ? AHEAD : 7,
    )
    return random.below(4) === 0 ? mutated(random, bytes) : bytes
  })
}

/** Which frames count, by the rules: SES-4, SES-14, SES-22, SES-23. */
class Model {
  received = 0
  isEnded = false
  private readonly ahead = new Set<number>()

  take(bytes: Uint8Array): boolean {
    if (bytes.length < SESSION_BYTES) return false
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const [kind, seq, ack] = [bytes[0] as number, view.getFloat64(16, true), view.getFloat64(24, true)]
    const isCount = (n: number) => Number.isSafeInteger(n) && n >= 0
    if (bytes[1] !== 1 || kind < 1 || kind > 3 || !isCount(seq) || !isCount(ack) || ack > SENT) return false
    if ((kind === SessionKind.ACK) !== (seq === 0) || view.getUint32(4, true) !== PEER || view.getUint32(8, true) !== SELF) return false
    if (kind === SessionKind.ACK || seq <= this.received || this.ahead.has(seq)) return false
    if (seq !== this.received + 1) {
      const isAhead = bytes.at(-1) === AHEAD && kind === SessionKind.DATA && seq <= this.received + WINDOW
      if (isAhead) this.ahead.add(seq)
      return isAhead
    }
    this.received++
    while (this.ahead.delete(this.received + 1)) this.received++
    if (kind === SessionKind.END) this.isEnded = true
    return kind === SessionKind.DATA
  }
}

export const sessions: Target = {
  name: 'session heads',
  share: 16,
  make,
  feed(input): Outcome {
    const clock = new Turns()
    const carrier = new Carrier()
    const session = new Session(carrier, { clock, self: SELF, peer: PEER, carrierLoses: false, reconnectMs: 1 })
    const got: Frame[] = []
    session.open({ onFrame: (frame) => got.push(frame), onTurnEnd() {}, onClose() {} })
    for (let i = 0; i < SENT; i++) session.send({ header: new Uint8Array(1), segments: [] })
    const model = new Model()
    let expected = 0
    const give = (bytes: Uint8Array): void => {
      const own = Uint8Array.from(bytes)
      const isTaken = !model.isEnded && model.take(own)
      if (isTaken) expected++
      carrier.receiver!.onFrame({ header: own, segments: [], overtook: own.at(-1) === AHEAD ? 1 : 0 })
    }
    for (const bytes of input) give(bytes)
    carrier.receiver!.onTurnEnd()
    clock.run()
    promised(got.length === expected, `${expected} frames delivered, and not ${got.length}`)
    // Each frame is answered by one at most; and what came ahead of its turn is not kept.
    promised(carrier.sent <= SENT + input.length + 1, `${carrier.sent} frames sent for ${input.length}`)
    promised(session.counts.early === 0, 'nothing early is kept')
    if (!model.isEnded) {
      give(head(SessionKind.DATA, model.received + 1, 0))
      clock.run()
      promised(got.length === expected, 'the honest frame behind them is delivered')
    }
    session.abandon('over')
    clock.run()
    return expected > 1 ? 'taken' : 'refused'
  },
}
