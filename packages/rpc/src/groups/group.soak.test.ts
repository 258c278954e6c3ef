/** Barriers, gathers and ends under many seeds: `npm run soak -- --seeds 1000 groups/group`. */
import './group.sim.test.js'
