/** Two runs that are killed while they save into one directory, many times: `npm run soak -- --kills 200 checkpoint/runs`. */
import './runs.real.test.js'
