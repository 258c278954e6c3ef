/** Passes that run at once, in many orders: `npm run soak -- --seeds 10000 overlapping`. */
import './overlapping-passes.sim.test.js'
