/** Repeatability under many seeds: `npm run soak -- --seeds 10000 suites/seeds`. */
import './seeds.sim.test.js'
