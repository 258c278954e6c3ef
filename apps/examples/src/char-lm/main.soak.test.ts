/** The main job on gpu.js, too, and the deaths of all its workers. */
import './main.real.test.js'
