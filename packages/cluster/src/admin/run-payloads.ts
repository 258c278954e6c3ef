/** Payloads of arguments and results of `cluster.on(name).run`, which may not contain references (the error says why). */
import { PostgradError, type WorkerHop } from '@postgrad/base'
import { RRef } from '@postgrad/rpc'
import { PayloadCodec, type ValueExtension } from '@postgrad/wire/internal'

const REFERENCE_TAG = 0x20

const noReferences: ValueExtension = {
  tag: REFERENCE_TAG,
  matches: (value) => value instanceof RRef,
  encode() {
    throw new PostgradError('WIRE_UNSUPPORTED_VALUE', {
      op: 'run',
      message: 'an RRef is held by a worker, and run takes and gives plain values',
      remedy: 'Use cluster.call(name, fn, [args]) or cluster.remote instead: the main thread then holds references itself.',
    })
  },
  decode(): never {
    throw new Error('a reference in a payload, which nobody writes')
  },
}

/** @param worker at which end this is; null is the main thread */
export function runPayloads(worker: WorkerHop | null): PayloadCodec {
  return new PayloadCodec(worker, [noReferences])
}
