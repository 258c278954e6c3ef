/** Which release of the library this is: the ends of a connection compare it. A test of package postgrad holds it against the manifest. */
export const RELEASE = '0.1.0'
