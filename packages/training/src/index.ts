/** The public names of training: what a training loop writes, shows and draws. */
export type { PlotCurve, PlotLine, PlotOptions, PlotPanel } from './chart/options.js'
export { type PlotRun, plot } from './chart/plot.js'
export { type MetricsValue, MetricsWriter, type MetricsWriterOptions, type MetricsWriterState } from './metrics/metrics-writer.js'
export { type Metrics, type MetricsRow, readMetrics } from './metrics/read-metrics.js'
export {
  ProgressBar,
  type ProgressBarOptions,
  type ProgressLoop,
  type ProgressReport,
  type ProgressStream,
  progress,
} from './progress/progress-bar.js'
