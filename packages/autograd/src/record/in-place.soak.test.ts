/** Random programs of views and writes, many: `npm run soak -- --seeds 10000 record/in-place`. */
import './in-place.test.js'
