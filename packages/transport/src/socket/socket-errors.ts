/** Errors of dialling and listening: their messages name each address with the reason of its failure. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { tooManyOpenFiles } from '@postgrad/base/internal'
import { type Address, formatAddress } from './address.js'

/** One address that was tried, and the error. */
export interface Attempt {
  readonly address: Address
  readonly error: Error
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was reset',
  ENOENT: 'the socket does not exist',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'no way to that host',
  ENETUNREACH: 'no way to that network',
  ETIMEDOUT: 'no answer',
  EACCES: 'not allowed',
  EPIPE: 'the connection was closed',
  EMFILE: 'this process may open no more files',
  ENFILE: 'this machine can open no more files',
}

/** With these the other end answered and refused this one: trying again changes nothing. */
const FINAL = ['AUTH_FAILED', 'VERSION_MISMATCH', 'CLUSTER_MISMATCH', 'CREDENTIALS_REQUIRED', 'CREDENTIALS_INVALID', 'PURPOSE_UNKNOWN']

export const isFinal = ({ error }: Attempt): boolean => isPostgradError(error) && FINAL.includes(error.code)

export function sentenceOf(error: Error): string {
  if (isPostgradError(error)) {
    // The sentence of all attempts has an operation and a remedy already.
    const from = error.message.startsWith(error.op) ? error.message.indexOf(' ') + 1 : 0
    const remedy = error.remedy === undefined ? -1 : error.message.lastIndexOf(error.remedy)
    const sentence = error.message.slice(from, remedy < 0 ? undefined : remedy).trim()
    return `${error.code}, ${sentence.replace(/\.$/, '')}`
  }
  const code = (error as NodeJS.ErrnoException).code
  const sentence = code === undefined ? undefined : SENTENCES[code]
  return sentence === undefined ? error.message : `${sentence} (${code})`
}

export const attemptsText = (attempts: readonly Attempt[]): string =>
  attempts.length === 0
    ? 'no address is known'
    : attempts.map(({ address, error }) => `${formatAddress(address)}: ${sentenceOf(error)}`).join('; ')

/** A process of this machine has the address and says nothing: the kernel takes connections to a Unix socket as long as the one who listens lives, until too many wait. */
const isThere = ({ address, error }: Attempt): boolean =>
  address.kind === 'unix' && (isPostgradError(error, 'CONNECT_TIMEOUT') || (error as NodeJS.ErrnoException).code === 'EAGAIN')

/** The error of a dial that reached no worker; if one was reached and refused, with its code. Values: whom, attempts, isThere (true: it is stopped, on this machine). */
export function connectFailed(whom: string, attempts: readonly Attempt[]): PostgradError {
  const final = attempts.find(isFinal) ?? attempts.find(({ error }) => isPostgradError(error, 'WRONG_PEER'))
  const cause = final?.error as PostgradError | undefined
  return new PostgradError(cause?.code ?? 'CONNECT_FAILED', {
    op: 'connect',
    message: `no connection to ${whom}: ${attemptsText(attempts)}`,
    remedy:
      cause === undefined
        ? (filesRemedy(attempts) ?? 'Check that it runs, that its address is right, and that no firewall is in between.')
        : (cause.remedy as string),
    cause: cause ?? attempts.at(-1)?.error,
    values: {
      ...cause?.values,
      ...(attempts.some(isThere) ? { isThere: true } : {}),
      whom,
      attempts: attempts.map(({ address, error }) => ({ address: formatAddress(address), said: sentenceOf(error) })),
    },
  })
}

/** The remedy if this process or its machine can open no more files. */
const filesRemedy = (attempts: readonly Attempt[]): string | undefined =>
  attempts.map(({ error }) => tooManyOpenFiles('connect', error)?.remedy).find((remedy) => remedy !== undefined)

export function addressInUse(address: string, code: string): PostgradError {
  return new PostgradError('ADDRESS_IN_USE', {
    op: 'listen',
    expected: 'an address that is free',
    got: `${address}, which another program listens on (${code})`,
    remedy: 'Choose another port, a range of ports, or port 0 for any that is free.',
    values: { address },
  })
}

/** At the path of a socket there is something that must not be removed. */
export function pathTaken(path: string, why: string): PostgradError {
  return new PostgradError('ADDRESS_IN_USE', {
    op: 'listen',
    expected: 'a path at which there is nothing, or a socket of yours that a killed process has left',
    got: `unix:${path}, which ${why}`,
    remedy: 'Choose another path, or remove what is there.',
    values: { address: `unix:${path}` },
  })
}

export function cannotListen(address: string, error: NodeJS.ErrnoException): PostgradError {
  const files = tooManyOpenFiles('listen', error)
  if (files !== null) return files
  return new PostgradError('ADDRESS_INVALID', {
    op: 'listen',
    expected: 'an address of this machine that may be listened on',
    got: `${address} (${error.code ?? error.message})`,
    remedy: 'Listen on 127.0.0.1, on an address that this machine has, or on a path whose folder exists and is yours.',
    cause: error,
    values: { address, code: error.code },
  })
}

export function exchangeClosed(op: string): PostgradError {
  return new PostgradError('EXCHANGE_CLOSED', {
    op,
    message: 'this worker’s connections have been closed',
    remedy: 'Do not connect after close.',
  })
}
