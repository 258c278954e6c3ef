/**
 * The trace field of an envelope, in the one layout that all packages share: `[chain, headers]`, `[chain, headers, anomaly]` or `[chain, headers, anomaly, true]`. The chain is
 * that of an actor's call (see actors in rpc), interceptors of users have set the headers, the third is autograd's anomaly mode, in which the
 * callee continues, and `true` means that the maker of an actor watches it. A message without any has no field, and pays nothing.
 */

/** The value of a call header: a plain value that any tracer or log accepts. */
export type HeaderValue = string | number | boolean | bigint | null
/** The headers that interceptors send with a call, by name: ids of traces, tenants or versions, for instance. */
export type CallHeaders = Readonly<Record<string, HeaderValue>>

/** See the scope of `base`. */
export type AnomalyMode = 'throw' | 'nan'

interface Field {
  readonly trace: unknown
}

interface WritableField {
  trace: unknown
}

/** Null if there is none, or if it is none of this layout. */
export function chainOf({ trace }: Field): bigint | null {
  return Array.isArray(trace) && typeof trace[0] === 'bigint' ? trace[0] : null
}

/** Null if there are none, or if they have another layout; entries that are not headers are left out. */
export function headersOf({ trace }: Field): CallHeaders | null {
  const headers: unknown = Array.isArray(trace) ? trace[1] : null
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return null
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => isHeaderValue(value)))
}

/** Null if there is none, or if it is none of this layout. */
export function anomalyOf({ trace }: Field): AnomalyMode | null {
  const mode: unknown = Array.isArray(trace) ? trace[2] : null
  return mode === 'throw' || mode === 'nan' ? mode : null
}

/** Whether the maker of this actor watches it from the start. */
export function isWatched({ trace }: Field): boolean {
  return Array.isArray(trace) && trace[3] === true
}

export function setChain(message: WritableField, chain: bigint): void {
  write(message, { chain })
}

export function setHeaders(message: WritableField, headers: CallHeaders): void {
  write(message, { headers })
}

export function setAnomaly(message: WritableField, anomaly: AnomalyMode): void {
  write(message, { anomaly })
}

export function setWatched(message: WritableField): void {
  write(message, { watched: true })
}

interface Parts {
  readonly chain?: bigint | null
  readonly headers?: CallHeaders | null
  readonly anomaly?: AnomalyMode | null
  readonly watched?: boolean
}

/** The rest stays as it is. */
function write(message: WritableField, parts: Parts): void {
  const { chain = chainOf(message), headers = headersOf(message), anomaly = anomalyOf(message), watched = isWatched(message) } = parts
  if (watched) message.trace = [chain, headers, anomaly, true]
  else message.trace = anomaly === null ? [chain, headers] : [chain, headers, anomaly]
}

export function isHeaderValue(value: unknown): value is HeaderValue {
  return value === null || ['string', 'number', 'boolean', 'bigint'].includes(typeof value)
}
