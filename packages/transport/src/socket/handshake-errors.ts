/**
 * The reasons for which an end refuses the other, with the error of each of the two. Only the reason crosses the wire, a word of this table: no secret, and
 * nothing that the other end could have chosen.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'

interface Refusal {
  readonly code: 'AUTH_FAILED' | 'VERSION_MISMATCH' | 'CLUSTER_MISMATCH' | 'WRONG_PEER' | 'PURPOSE_UNKNOWN' | 'HANDSHAKE_INVALID'
  /** The other end's message, after "the other end refused: ". */
  readonly told: string
  /** For both ends. */
  readonly remedy: string
}

const REFUSALS = {
  key: {
    code: 'AUTH_FAILED',
    told: 'the proof that it received was not made with its key',
    remedy: 'Give both ends the same key file. If they have it, the connection may have been tampered with.',
  },
  role: {
    code: 'AUTH_FAILED',
    told: 'neither end has the key of the other’s role',
    remedy: 'A member has the keys of all roles: add the line of the role to its key file.',
  },
  credentials: {
    code: 'AUTH_FAILED',
    told: 'it asks for other credentials',
    remedy: 'Give both ends credentials of the same kind: a key file, TLS, or on loopback none.',
  },
  certificate: {
    code: 'AUTH_FAILED',
    told: 'the certificate does not name the worker that this end says it is',
    remedy: "Use a certificate with 'URI:postgrad:<cluster>/<name>?role=<role>' of that very worker, or with the name '*'.",
  },
  version: {
    code: 'VERSION_MISMATCH',
    told: 'it is of another version',
    remedy: 'Install the same version of postgrad at both ends.',
  },
  cluster: {
    code: 'CLUSTER_MISMATCH',
    told: 'it belongs to another cluster',
    remedy: 'Compare the names of the clusters, and the address.',
  },
  peer: {
    code: 'WRONG_PEER',
    told: 'it is another worker',
    remedy: 'The worker may have been started again, or the address may be that of another one: look it up again.',
  },
  self: {
    code: 'WRONG_PEER',
    told: 'it is the same worker',
    remedy: 'Two workers may have the same id, or the address may be this worker’s own.',
  },
  purpose: {
    code: 'PURPOSE_UNKNOWN',
    told: 'it does not serve this purpose, or is about to end',
    remedy: 'Check the address: the process of rank 0 keeps the store.',
  },
  malformed: {
    code: 'HANDSHAKE_INVALID',
    told: 'it did not understand what was said',
    remedy: 'Another program may use this port, or something between the ends may have changed what was said.',
  },
  unexpected: {
    code: 'HANDSHAKE_INVALID',
    told: 'it received something out of turn',
    remedy: 'Another program may use this port.',
  },
  size: {
    code: 'HANDSHAKE_INVALID',
    told: 'it received too much',
    remedy: 'Another program may use this port.',
  },
} as const satisfies Record<string, Refusal>

export type RefusalReason = keyof typeof REFUSALS

export const isRefusalReason = (value: unknown): value is RefusalReason => typeof value === 'string' && Object.hasOwn(REFUSALS, value)

/** The error of the end that refuses. `values.by` is 'self'. */
export function refuse(
  op: string,
  reason: RefusalReason,
  expected: string,
  got: string,
  values: Readonly<Record<string, unknown>> = {},
): PostgradError {
  const { code, remedy } = REFUSALS[reason]
  return new PostgradError(code, { op, expected, got, remedy, values: { ...values, reason, by: 'self' } })
}

/** The error of the end that was refused. `values.by` is 'peer'. */
export function wasRefused(op: string, reason: RefusalReason): PostgradError {
  const { code, told, remedy } = REFUSALS[reason]
  return new PostgradError(code, { op, message: `the other end refused: ${told}`, remedy, values: { reason, by: 'peer' } })
}

/** The reason to send to the other end; null if the other end refused. For any other error 'malformed', which says nothing about this end. */
export function reasonOf(error: unknown): RefusalReason | null {
  if (!isPostgradError(error)) return 'malformed'
  const { reason, by } = error.values
  if (by === 'peer') return null
  return isRefusalReason(reason) && REFUSALS[reason].code === error.code ? reason : 'malformed'
}
