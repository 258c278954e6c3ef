/** The entry of a process that a cluster starts. */
import { runAgent } from './process-agent.js'

runAgent()
