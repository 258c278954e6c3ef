export { type CurrentJob, currentJob } from './current-job.js'
export { currentJobs, type JobCounts, type JobFunction, type JobOptions, Jobs, type MapOptions } from './jobs.js'
export type { Progress } from './progress.js'
