/**
 * The frames between a store's client (`tcp-store.ts`) and its server (`store-server.ts`): the header is a small JSON text, the segments are values. Both
 * ends take only the messages in these tables, field by field.
 *
 *     client                                        server
 *     hello {version, client}               ──▸
 *                                           ◂──     welcome {version, store}   or   refused {error}
 *     add {n: 1, done: 1, key, amount}      ──▸
 *     get {n: 2, key, timeoutMs}            ──▸
 *                                           ◂──     number {n: 1, number}
 *     cancel {of: 2}                        ──▸     (not answered, nor is the get)
 *     bye {}                                ──▸
 *                                           ◂──     closed {}                  the store has ended
 *
 * The client numbers requests over all its connections. Requests that change something say `done`: each change of a lower number has been answered, so
 * the server may forget its answer. A request that was not answered when its connection ended is sent again, as it was.
 */

import { isPostgradError, PostgradError } from '@postgrad/base'
import { TextDecoder, whatOf } from '@postgrad/base/internal'
import type { Frame } from '../link.js'
import { utf8 } from './store-values.js'

export const STORE_PROTOCOL_VERSION = 1

/** Of a request; a reply, which may name all keys of one twice, has four times as much. */
export const HEADER_BYTES_MAX = 2 ** 18

/** How many requests a client has under way, other than waits. */
export const WINDOW = 256

/** By their names, and how many segments each has. */
export type StoreRequest =
  | { op: 'hello'; version: number; client: string }
  | { op: 'bye' }
  | { op: 'set'; n: number; done: number; key: string }
  | { op: 'add'; n: number; done: number; key: string; amount: number }
  | { op: 'compareSet'; n: number; done: number; key: string }
  | { op: 'deleteKey'; n: number; done: number; key: string }
  | { op: 'get'; n: number; key: string; timeoutMs: number }
  | { op: 'wait'; n: number; keys: string[]; timeoutMs: number }
  | { op: 'check'; n: number; keys: string[] }
  | { op: 'numKeys'; n: number }
  | { op: 'cancel'; of: number }

export type StoreReply =
  | { op: 'welcome'; version: number; store: string }
  | { op: 'refused'; error: ErrorText }
  | { op: 'closed' }
  /** Of set and wait, and of a compareSet that has put what it should. */
  | { op: 'done'; n: number }
  /** Of get, and of a compareSet that has not. */
  | { op: 'value'; n: number }
  /** Of add and numKeys. */
  | { op: 'number'; n: number; number: number }
  /** Of check and deleteKey. */
  | { op: 'yes'; n: number; yes: boolean }
  | { op: 'error'; n: number; error: ErrorText }

/** An error as it travels. Its stack stays where it arose. */
export interface ErrorText {
  readonly code: string
  readonly op: string
  readonly message: string
  readonly remedy: string
  readonly values: Readonly<Record<string, unknown>>
}

type Check = (value: unknown) => boolean

interface Shape {
  readonly segments: number
  readonly fields: Readonly<Record<string, Check>>
}

const number: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 1
const integer: Check = (value) => Number.isSafeInteger(value)
const time: Check = (value) => typeof value === 'number' && value >= 0
const text: Check = (value) => typeof value === 'string'
const texts: Check = (value) => Array.isArray(value) && value.every(text)
const flag: Check = (value) => typeof value === 'boolean'
const id: Check = (value) => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value)
const error: Check = (value) => {
  if (!isPlain(value) || Object.keys(value).length !== 5) return false
  const { code, op, message, remedy, values } = value
  return text(code) && /^[A-Z][A-Z0-9_]{0,63}$/.test(code as string) && [op, message, remedy].every(text) && isPlain(values)
}

const CHANGE = { n: number, done: number, key: text }

const REQUESTS: { [Op in StoreRequest['op']]: Shape } = {
  hello: { segments: 0, fields: { version: number, client: id } },
  bye: { segments: 0, fields: {} },
  set: { segments: 1, fields: CHANGE },
  add: { segments: 0, fields: { ...CHANGE, amount: integer } },
  compareSet: { segments: 2, fields: CHANGE },
  deleteKey: { segments: 0, fields: CHANGE },
  get: { segments: 0, fields: { n: number, key: text, timeoutMs: time } },
  wait: { segments: 0, fields: { n: number, keys: texts, timeoutMs: time } },
  check: { segments: 0, fields: { n: number, keys: texts } },
  numKeys: { segments: 0, fields: { n: number } },
  cancel: { segments: 0, fields: { of: number } },
}

const REPLIES: { [Op in StoreReply['op']]: Shape } = {
  welcome: { segments: 0, fields: { version: number, store: id } },
  refused: { segments: 0, fields: { error } },
  closed: { segments: 0, fields: {} },
  done: { segments: 0, fields: { n: number } },
  value: { segments: 1, fields: { n: number } },
  number: { segments: 0, fields: { n: number, number: integer } },
  yes: { segments: 0, fields: { n: number, yes: flag } },
  error: { segments: 0, fields: { n: number, error } },
}

/** The frame owns the segments: give it copies of what is needed again. */
export function encodeFrame(head: StoreRequest | StoreReply, segments: readonly Uint8Array[] = []): Frame {
  return { header: utf8(JSON.stringify(head)), segments }
}

/** @throws STORE_FRAME_INVALID */
export function decodeRequest(frame: Frame): StoreRequest {
  return decode<StoreRequest>('request', frame, REQUESTS, HEADER_BYTES_MAX)
}

/** @throws STORE_FRAME_INVALID */
export function decodeReply(frame: Frame): StoreReply {
  return decode<StoreReply>('reply', frame, REPLIES, 4 * HEADER_BYTES_MAX)
}

function decode<T extends { op: string }>(op: string, { header, segments }: Frame, shapes: Record<T['op'], Shape>, bytesMax: number): T {
  if (header.length > bytesMax) throw invalid(op, `a header of at most ${bytesMax} bytes`, `${header.length}`)
  const head = parse(op, header)
  const name = isPlain(head) ? head.op : null
  if (!isPlain(head) || typeof name !== 'string' || !Object.hasOwn(shapes, name))
    throw invalid(op, `one of ${Object.keys(shapes)}`, 'another')
  const shape = shapes[name as T['op']]
  const fields = Object.entries(shape.fields)
  for (const [field, check] of fields)
    if (!Object.hasOwn(head, field) || !check(head[field])) throw invalid(op, `'${field}' of ${name}`, 'another')
  if (Object.keys(head).length !== fields.length + 1) throw invalid(op, `the fields of ${name}`, 'more')
  if (segments.length !== shape.segments) throw invalid(op, `${shape.segments} segments with ${name}`, `${segments.length}`)
  return head as unknown as T
}

function parse(op: string, header: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(header))
  } catch {
    throw invalid(op, 'a JSON text', 'something else')
  }
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function invalid(op: string, expected: string, got: string): PostgradError {
  return new PostgradError('STORE_FRAME_INVALID', {
    op: `store ${op}`,
    expected,
    got,
    remedy: 'The other end is not a store of this version.',
  })
}

/** Leaves out the text of a bug. */
export function errorText(thrown: unknown): ErrorText {
  if (!isPostgradError(thrown)) {
    const message = 'the process that keeps the store threw an unexpected error'
    const remedy = 'Please report it, with the warning that the process has printed.'
    return { code: 'STORE_SERVER_FAILED', op: 'store', message, remedy, values: {} }
  }
  const { code, op, remedy = '', values } = thrown
  return { code, op, message: whatOf(thrown), remedy, values }
}

export function errorOf({ code, op, message, remedy, values }: ErrorText): PostgradError {
  return new PostgradError(code, { op, message, remedy, values })
}
