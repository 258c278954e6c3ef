/** The main thread among workers that die, for longer: `npm run soak -- --turmoil-ms 600000 main-turmoil`. */
import './main-turmoil.real.test.js'
