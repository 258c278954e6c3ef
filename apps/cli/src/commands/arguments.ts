/** Parsers for the values of options. Commander shows their errors after the option's name. */
import { InvalidArgumentError } from 'commander'
import { type HostPort, parseHostPort, parsePort } from '../rendezvous/host-port.js'

const WORKERS_MAX = 65_535
const PORTS_MAX = 10_000

export function workers(text: string): number | readonly string[] {
  if (!/^\d+$/.test(text)) return namesIn(text)
  const count = Number(text)
  if (count < 1 || count > WORKERS_MAX) throw new InvalidArgumentError(`A cluster has 1 to ${WORKERS_MAX} workers.`)
  return count
}

function namesIn(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.length === 1) throw new InvalidArgumentError(`Write a count (2), names (a,b), or one name with a comma after it (${text},).`)
  return names.at(-1) === '' ? names.slice(0, -1) : names
}

export function integer(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || text.trim() === '') throw new InvalidArgumentError('An integer is expected.')
  return value
}

/** @param min the smallest that is taken */
export function integerFrom(min: number): (text: string) => number {
  return (text) => {
    const value = integer(text)
    if (value < min) throw new InvalidArgumentError(`An integer from ${min} is expected.`)
    return value
  }
}

export function milliseconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0 || text.trim() === '') throw new InvalidArgumentError('A number of milliseconds is expected.')
  return value
}

/** Node fires a timer of a longer delay after 1 ms. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** For an option that ends in a timer of Node's. @param remedy what to write instead of a longer time, if there is something */
export function timerMilliseconds(remedy = ''): (text: string) => number {
  return (text) => {
    const value = milliseconds(text)
    if (value > TIMER_MS_MAX) throw new InvalidArgumentError(`At most ${TIMER_MS_MAX} ms (24.8 days) are possible.${remedy}`)
    return value
  }
}

export function hostPort(text: string): HostPort {
  const at = parseHostPort(text)
  if (at === null) throw new InvalidArgumentError('HOST:PORT is expected, as in node1:29500 or [::1]:29500.')
  return at
}

/** '29500-29599' or a single port. */
export function portRange(text: string): readonly [number, number] {
  const parts = text.split('-').map(parsePort)
  const [from, to = from] = parts
  if (from == null || to == null || parts.length > 2 || to < from)
    throw new InvalidArgumentError('FROM-TO is expected, ports from 1 to 65535, as in 29500-29599.')
  if (to - from >= PORTS_MAX) throw new InvalidArgumentError(`At most ${PORTS_MAX} ports.`)
  return [from, to]
}
