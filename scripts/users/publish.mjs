/** What the linters of packages say about the tarball, for `users-projects.mjs`. `publish-check.mjs` asks npm itself. */

/** No project of these has the package installed: they read the tarball. */
const linter = (dependencies, ...runs) => ({ dependencies, isAlone: true, files: {}, runs })

export const linters = (tarball) => ({
  publint: linter({ publint: '0.3.25' }, ['publint', tarball, '--strict']),
  attw: linter({ '@arethetypeswrong/cli': '0.18.5' }, ['attw', tarball]),
})
