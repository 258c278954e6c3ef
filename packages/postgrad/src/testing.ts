/** The door for users' own tests, `postgrad/testing`: the simulation, its oracle, and what they return. */

