/** The door `postgrad/jobs`: work that any thread of a pool may do. */
export { type ClusterJobsOptions, type JobsOptions, jobs, reportProgress } from '@postgrad/cluster'
export * from '@postgrad/jobs'
export { currentSignal } from '@postgrad/rpc'
