/** Threads pass the contract of hosts. */
import { ThreadHost } from './thread-host.js'
import { describeHost } from './worker-host.suite.js'

describeHost('threads', () => new ThreadHost(new URL('./fixtures/hosted-thread.js', import.meta.url), null))
