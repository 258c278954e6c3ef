/** esbuild, loaded when it is needed: in a fresh clone set-up, which installs it, comes first. */
export const build = async (options) => (await import('esbuild')).build(options)
export const transform = async (text, options) => (await import('esbuild')).transform(text, options)
