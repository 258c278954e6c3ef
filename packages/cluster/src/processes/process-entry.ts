/** What a process that a cluster starts loads first. */
import { runAgent } from './process-agent.js'

runAgent()
