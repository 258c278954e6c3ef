/**
 * The declarations of the packed library: one tree for `require`, and for `import` a door into it. With a tree for each, the compiler would take the tensor of a CommonJS
 * module and that of an ES module for different classes, where they are one library.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** Those of all shipped packages side by side: '@postgrad/rpc/internal' → '../rpc/internal.js'. */
export function copyTypes(packages, to) {
  mkdirSync(to, { recursive: true })
  writeFileSync(join(to, 'package.json'), '{ "type": "commonjs" }\n')
  for (const name of readdirSync(packages)) {
    const { private: isPrivate } = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8'))
    if (isPrivate !== true) copyDeclarations(join(packages, name, 'dist'), join(to, name))
  }
}

function copyDeclarations(from, to) {
  for (const { name, parentPath } of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const path = relative(from, join(parentPath, name))
    if (!/\.d\.ts$/.test(name) || /\.(test|suite|fixture)\.d\.ts$/.test(name) || /(^|[\\/])fixtures[\\/]/.test(path)) continue
    const up = `../${'../'.repeat(path.split(sep).length - 1)}`
    const text = readFileSync(join(from, path), 'utf8').replace(
      /(['"])@postgrad\/([a-z-]+)(?:\/(\w+))?\1/g,
      (_, quote, sibling, door = 'index') => `${quote}${up}${sibling}/${door}.js${quote}`,
    )
    mkdirSync(dirname(join(to, path)), { recursive: true })
    writeFileSync(join(to, path), text)
  }
}

/**
 * @param to the declarations of an ES module
 * @param tree what it passes on, in the tree
 */
export function writeTypesDoor(to, tree) {
  const path = relative(dirname(to), tree).split(sep).join('/')
  writeFileSync(to, `export * from './${path.replace(/\.d\.ts$/, '.js')}'\n`)
}
