/** All acceptance cases as one program: what `launch` loads on every worker. Importing it exposes their functions. */
export { backwardCases, myAdd } from './backward.js'
export { CASE_WORKERS, type CaseCluster, type NumberCase, type Plain, type Plains, runCase } from './case.js'
export { type CleanUpReport, cleanUp, cleanUpCases } from './clean-up.js'
export { designNote, designNoteOn, documentationCases } from './documentation.js'
export { type ErrorCase, errorCases, never, threadErrorCases } from './errors.js'
export { contextState, type GraphReport, type GraphText, graphCase, graphCases } from './graph.js'
export { longPingPong, type PingPongReport } from './ping-pong.js'
export { type TrainingPlan, type TrainingReport, train } from './training.js'
