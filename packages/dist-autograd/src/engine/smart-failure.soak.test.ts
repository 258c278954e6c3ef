/** Passes that fail, under many seeds: `npm run soak -- --seeds 1000 smart-failure`. */
import './smart-failure.sim.test.js'
