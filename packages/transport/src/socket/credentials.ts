/**
 * The credentials of an end of a connection, and when it needs some. `key-file.ts` reads keys, `certificate.ts` the identity in a certificate;
 * `handshake.ts` proves them.
 */
import { PostgradError } from '@postgrad/base'
import { type Address, formatAddress, isLocal } from './address.js'

/** The worker at one end of a connection, as the handshake has proven it. */
export interface Identity {
  /** The cluster's name. */
  readonly cluster: string
  /** The worker's name. */
  readonly name: string
  /** The worker's id, 16 bits. */
  readonly id: number
  /** The worker's role, which decides what the worker is allowed to do. */
  readonly role: string
}

/**
 * Secret keys, one for each role, which both ends of a connection have. `postgrad keygen` makes them, `readKeyFile` reads them. A process that knows the key of
 * a role can take that role. So give a member all keys, and an observer only the key of its own role.
 */
export interface KeyCredentials {
  /** Says that these are keys. */
  readonly kind: 'key'
  /** The role of this process. */
  readonly role: string
  /** The key of each role, 32 to 1,024 bytes: of this process's role, and of all roles that this process must recognize in others. */
  readonly keys: Readonly<Record<string, Uint8Array>>
}

/** Certificates for mutual TLS 1.3, as PEM. A URI among the certificate's alternative names is the worker's identity: `postgrad:<cluster>/<name>?role=<role>`. */
export interface TlsCredentials {
  /** Says that these are certificates. */
  readonly kind: 'tls'
  /** The certificate of an authority that signs only the certificates of this cluster. */
  readonly ca: string | Buffer
  /** The certificate of this process. */
  readonly cert: string | Buffer
  /** The private key of this process. */
  readonly key: string | Buffer
}

/** The proof of a process's identity, for `init`: keys or certificates. */
export type Credentials = KeyCredentials | TlsCredentials

/** The role of a worker without another. */
export const DEFAULT_ROLE = 'member'

export const KEY_BYTES_MIN = 32
export const KEY_BYTES_MAX = 1024

const ROLES_MAX = 64
const ROLE = /^[A-Za-z0-9_-]{1,64}$/
const CLUSTER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,126}$/
/** As `checkWorkerName` of rpc, a package above. */
const WORKER = /^[A-Za-z0-9\-_:]{1,127}$/

/** Letters, digits, '-' and '_', 64 at most. */
export const isRole = (role: unknown): role is string => typeof role === 'string' && ROLE.test(role) && role !== '__proto__'
/** Letters, digits, '.', '-' and '_', 127 at most. */
export const isClusterName = (name: unknown): name is string => typeof name === 'string' && CLUSTER.test(name)
/** Whether it may name a worker. */
export const isWorkerName = (name: unknown): name is string => typeof name === 'string' && WORKER.test(name)

/**
 * The credentials themselves, if they are some. No error of it shows a key.
 * @throws CREDENTIALS_INVALID
 */
export function checkCredentials(credentials: Credentials): Credentials {
  const kind = (credentials as Credentials | null | undefined)?.kind
  if (kind === 'key') return checkKeys(credentials as KeyCredentials)
  if (kind === 'tls') return checkPem(credentials as TlsCredentials)
  throw credentialsInvalid(
    "credentials of kind 'key' or 'tls'",
    typeof kind === 'string' ? `'${kind}'` : 'something else',
    'Read a key file, or pass { kind: "tls", ca, cert, key }.',
  )
}

/**
 * Without credentials any process that reaches an address may call any function, so an address that others reach requires them.
 * @throws CREDENTIALS_REQUIRED
 */
export function requireCredentials(address: Address, credentials: Credentials | null): void {
  if (credentials !== null || isLocal(address)) return
  const text = formatAddress(address)
  throw new PostgradError('CREDENTIALS_REQUIRED', {
    op: 'credentials',
    message: `other machines reach ${text}, and no credentials are given`,
    remedy: 'Make a key by `postgrad keygen`, and give the same file to every process; or use 127.0.0.1, which only this machine reaches.',
    values: { address: text },
  })
}

function checkKeys(credentials: KeyCredentials): KeyCredentials {
  const { role, keys } = credentials
  if (!isRole(role)) throw credentialsInvalid("letters, digits, '-' and '_' as a role, 64 at most", quoted(role), 'Rename the role.')
  if (typeof keys !== 'object' || keys === null) throw credentialsInvalid('keys by role', typeof keys, 'Write { keys: { member: key } }.')
  const roles = Object.keys(keys)
  if (roles.length > ROLES_MAX)
    throw credentialsInvalid(`at most ${ROLES_MAX} roles`, String(roles.length), 'Give only the keys that this end needs.')
  for (const one of roles) checkKey(one, keys[one])
  if (!Object.hasOwn(keys, role))
    throw credentialsInvalid(`a key for the role '${role}'`, 'none', 'An end proves its role by the key of that role.')
  roles.forEach((one, i) => {
    const other = roles.slice(0, i).find((before) => sameBytes(keys[before] as Uint8Array, keys[one] as Uint8Array))
    if (other !== undefined) {
      throw credentialsInvalid(
        'a key of its own for each role',
        `the same for '${other}' and '${one}'`,
        'A process that has that key could be in both roles: make another.',
      )
    }
  })
  return credentials
}

function checkKey(role: string, key: unknown): void {
  if (!isRole(role)) throw credentialsInvalid("letters, digits, '-' and '_' as a role, 64 at most", quoted(role), 'Rename the role.')
  if (!ArrayBuffer.isView(key)) {
    throw credentialsInvalid(`bytes as the key of '${role}'`, typeof key, 'Make it by generateKey, or read a key file.')
  }
  const bytes = key as Uint8Array
  if (bytes.BYTES_PER_ELEMENT !== 1 || bytes.length < KEY_BYTES_MIN || bytes.length > KEY_BYTES_MAX) {
    throw credentialsInvalid(
      `${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes as the key of '${role}'`,
      `${bytes.byteLength}`,
      'Make one by `postgrad keygen`.',
    )
  }
  if (bytes.every((byte) => byte === 0))
    throw credentialsInvalid(`random bytes as the key of '${role}'`, 'zeros', 'Make one by `postgrad keygen`.')
}

function checkPem(credentials: TlsCredentials): TlsCredentials {
  for (const part of ['ca', 'cert', 'key'] as const) {
    const pem: unknown = credentials[part]
    const text =
      typeof pem === 'string'
        ? pem
        : ArrayBuffer.isView(pem)
          ? Buffer.from(pem.buffer, pem.byteOffset, pem.byteLength).toString('latin1')
          : ''
    if (!text.includes('-----BEGIN ')) {
      throw credentialsInvalid(
        `PEM as '${part}'`,
        typeof pem === 'string' || ArrayBuffer.isView(pem) ? 'other text' : typeof pem,
        "Pass what a file holds that has '-----BEGIN ' in it, not its path.",
      )
    }
  }
  return credentials
}

/** Both are this end's own, so the time that it takes leaks nothing. */
const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

const quoted = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value.slice(0, 64)) : typeof value)

export function credentialsInvalid(expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError('CREDENTIALS_INVALID', { op: 'credentials', expected, got, remedy })
}
