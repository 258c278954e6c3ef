/** Expands Slurm's short form of a list of hosts, 'node[01-03,07],login1', as `scontrol show hostnames` does. */
import { PostgradError } from 'postgrad'

/** More hosts than any cluster has: a wrong list must not fill the memory. */
const HOSTS_MAX = 65_536

/** @param variable that has the list @throws NODE_LIST_INVALID */
export function expandNodeList(text: string, variable: string): readonly string[] {
  const refuse = (why: string): PostgradError =>
    new PostgradError('NODE_LIST_INVALID', {
      op: variable,
      expected: "a list of hosts such as 'node[01-03,07]'",
      got: `'${text}': ${why}`,
      remedy: 'Pass --master HOST:PORT instead.',
      values: { list: text },
    })
  const hosts: string[] = []
  for (const item of itemsOf(text, refuse)) {
    hosts.push(...hostsOf(item, refuse))
    if (hosts.length > HOSTS_MAX) throw refuse(`more than ${HOSTS_MAX} hosts`)
  }
  return hosts
}

/** The parts between commas outside of brackets. */
function itemsOf(text: string, refuse: (why: string) => PostgradError): readonly string[] {
  const items: string[] = []
  let item = ''
  let isInside = false
  for (const char of text) {
    if (char === '[' && isInside) throw refuse('a bracket inside of brackets')
    if (char === ']' && !isInside) throw refuse('a bracket that closes nothing')
    if (char === '[') isInside = true
    if (char === ']') isInside = false
    if (char === ',' && !isInside) {
      items.push(item)
      item = ''
    } else item += char
  }
  if (isInside) throw refuse('a bracket that is not closed')
  items.push(item)
  if (items.some((one) => one.trim() === '')) throw refuse('a name is missing')
  return items.map((one) => one.trim())
}

/** 'rack[1-2]n[1,3]' → rack1n1, rack1n3, rack2n1, rack2n3. */
function hostsOf(item: string, refuse: (why: string) => PostgradError): readonly string[] {
  let hosts = ['']
  for (const part of item.split(/(\[[^\]]*\])/)) {
    const ends = part.startsWith('[') ? numbersOf(part.slice(1, -1), refuse) : [part]
    if (hosts.length * ends.length > HOSTS_MAX) throw refuse(`more than ${HOSTS_MAX} hosts`)
    hosts = hosts.flatMap((host) => ends.map((end) => host + end))
  }
  return hosts
}

/** '01-03,07' → 01, 02, 03, 07: as wide as the first of each range is written. */
function numbersOf(text: string, refuse: (why: string) => PostgradError): readonly string[] {
  const numbers: string[] = []
  for (const range of text.split(',')) {
    const [, first, last] = /^(\d+)(?:-(\d+))?$/.exec(range.trim()) ?? []
    if (first === undefined) throw refuse(`'${range}' is not a number or a range`)
    const [from, to] = [Number(first), Number(last ?? first)]
    if (to < from) throw refuse(`the range '${range}' runs backwards`)
    if (to - from >= HOSTS_MAX) throw refuse(`more than ${HOSTS_MAX} hosts`)
    for (let number = from; number <= to; number++) numbers.push(String(number).padStart(first.length, '0'))
  }
  return numbers
}
