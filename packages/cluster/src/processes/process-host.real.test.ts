/** Processes pass the contract of hosts: all workers in one, and each in its own. */
import { RealClock } from '@postgrad/transport/internal'
import { describeHost } from '../host/worker-host.suite.js'
import { MAIN_ID } from '../membership/roster.js'
import { ProcessHost } from './process-host.js'

const host = (placeOf: (name: string) => number): ProcessHost =>
  new ProcessHost({
    entry: new URL('./fixtures/hosted-process.js', import.meta.url),
    placeOf,
    main: { name: 'main', id: MAIN_ID },
    clock: new RealClock(),
  })

describeHost('threads of one process', () => host(() => 0))
describeHost('processes', () => host((name) => (name === 'a' ? 0 : 1)))
