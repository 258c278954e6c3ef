/** The store in a file under many seeds, with processes that are killed while they write: `npm run soak -- --seeds 1000 --rounds 500 store/file-store`. */
import './file-store.real.test.js'
import './file-store.test.js'
