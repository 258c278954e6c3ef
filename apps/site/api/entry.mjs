/** One public name as markdown: import path, signature, meaning, parameters, errors, example, members. `reference.mjs` calls it. */
import { ReflectionKind } from 'typedoc'

const is = (reflection, kind) => (reflection.kind & kind) !== 0
/** A signature that is longer goes over several lines: what a telephone shows. */
const LINE = 72

/**
 * @param name `{ name, doors, reflection }`, and `type` if a constant and a type share the name
 * @param tools `placeOf(reflection)`: its address; `functionOf(name)`: the address of the operation that a method of Tensor calls; `errorPages`: code → address
 */
export function entry({ name, doors, reflection, type }, tools) {
  // postgrad/types has the types of everything: only for its own names it is worth a line.
  const [door, ...others] = doors.length > 1 ? doors.filter((each) => each !== 'postgrad/types') : doors
  const comment = commentOf(reflection) ?? type?.comment
  const imports = `${code(`import { ${entry.kindOf(reflection) === 'namespace' ? '' : typeWord(reflection)}${name} } from '${door}'`)}`
  const also = others.length === 0 ? '' : ` · also in ${others.map((each) => code(`'${each}'`)).join(', ')}`
  return [
    `## ${code(name)} {#${name}}`,
    imports + also,
    fence([reflection, ...(type === undefined ? [] : [type])].map((each) => signatureOf(each, name, tools)).join('\n')),
    ...described(comment, tools),
    ...parameters(reflection, tools),
    ...throwing(comment, tools),
    ...examples(comment),
    ...members(reflection, tools),
    ...typesOf(reflection, tools),
  ].join('\n\n')
}

/** 'function', 'class', 'const', 'interface', 'type'; a constant that can be called is a function. */
entry.kindOf = (reflection) => {
  if (is(reflection, ReflectionKind.Class)) return 'class'
  if (is(reflection, ReflectionKind.Interface)) return 'interface'
  if (is(reflection, ReflectionKind.TypeAlias)) return 'type'
  return callsOf(reflection).length > 0 ? 'function' : 'const'
}

const typeWord = (reflection) => (is(reflection, ReflectionKind.Interface | ReflectionKind.TypeAlias) ? 'type ' : '')

/** The call signatures of a function, and of a constant whose type is a function. */
function callsOf(reflection) {
  if (reflection.signatures?.length > 0) return reflection.signatures
  const type = reflection.type
  if (type?.type === 'reflection') return type.declaration.signatures ?? []
  // `typeof call`: the same function under another name.
  if (type?.type === 'query') return type.queryType.reflection?.signatures ?? []
  // WithInPlace<(x: Tensor) => Tensor>: an operation with an in-place form.
  const inner = type?.type === 'reference' ? type.typeArguments?.[0] : undefined
  return ['WithInPlace', 'Functional'].includes(type?.name) && inner?.type === 'reflection' ? (inner.declaration.signatures ?? []) : []
}

/** That of a function itself, if it has one: TypeDoc takes the comment at the head of a file for that of each function in an `export { … }` below it. */
function commentOf(reflection) {
  const own = reflection.type?.type === 'query' ? [] : callsOf(reflection)
  return own.find(({ comment }) => comment !== undefined)?.comment ?? reflection.comment
}

// ---- signatures ----

function signatureOf(reflection, name, tools) {
  if (is(reflection, ReflectionKind.Class)) return classLine(reflection, name, tools)
  if (is(reflection, ReflectionKind.Interface)) return `interface ${name}${generics(reflection)}${heritage(reflection, tools)}`
  if (is(reflection, ReflectionKind.TypeAlias)) return `type ${name}${generics(reflection)} = ${wrapped(typeText(reflection.type))}`
  const calls = callsOf(reflection)
  if (calls.length > 0) return calls.map((call) => callText(call, name)).join('\n')
  if (reflection.type === undefined) return `namespace ${name}`
  const text = typeText(reflection.type)
  // An object's members follow, each with its comment.
  const hasMembers = reflection.type.type === 'reflection' && reflection.type.declaration.children?.length > 0
  return `const ${name}: ${hasMembers && text.length > LINE ? '{ … }' : wrapped(text)}`
}

function classLine(reflection, name, tools) {
  const head = `${reflection.flags.isAbstract ? 'abstract ' : ''}class ${name}${generics(reflection)}${heritage(reflection, tools)}`
  const constructors = reflection.children?.find((child) => is(child, ReflectionKind.Constructor))
  const news = constructors?.inheritedFrom || constructors?.signatures === undefined ? [] : constructors.signatures
  return [
    head,
    ...news.map((call) => `  ${callText({ parameters: call.parameters }, 'constructor', false).replaceAll('\n', '\n  ')}`),
  ].join('\n')
}

/** Without the types that only the library knows. */
function heritage({ extendedTypes, implementedTypes }, tools) {
  const shown = (types) =>
    (types ?? []).filter((type) =>
      type.reflection === undefined ? !type.package?.startsWith('@postgrad/') : tools.placeOf(type.reflection),
    )
  const part = (word, types) => (shown(types).length === 0 ? '' : ` ${word} ${shown(types).map(typeText).join(', ')}`)
  return part('extends', extendedTypes) + part('implements', implementedTypes)
}

function generics({ typeParameters }) {
  if (!typeParameters?.length) return ''
  const each = ({ name, type, default: standard }) =>
    name + (type === undefined ? '' : ` extends ${type}`) + (standard === undefined ? '' : ` = ${standard}`)
  return `<${typeParameters.map(each).join(', ')}>`
}

function callText(call, name, result = true) {
  const params = (call.parameters ?? []).map((param) => paramText(param))
  const end = result ? `: ${typeText(call.type)}` : ''
  const line = `${name}${generics(call)}(${params.join(', ')})${end}`
  return line.length <= LINE || params.length === 0
    ? line
    : `${name}${generics(call)}(\n${params.map((one) => `  ${one},\n`).join('')})${end}`
}

function paramText({ name, flags, type, defaultValue }) {
  const shown = name === '__namedParameters' ? 'options' : name
  const optional = flags.isOptional || defaultValue !== undefined
  return `${flags.isRest ? '...' : ''}${shown}${optional ? '?' : ''}: ${typeText(type)}`
}

/** As TypeScript writes it: TypeDoc's own text of an object type is `Object`. */
function typeText(type) {
  if (type === undefined) return 'unknown'
  switch (type.type) {
    case 'reflection':
      return objectText(type.declaration)
    case 'union':
      return type.types.map((each) => (isFunction(each) ? `(${typeText(each)})` : typeText(each))).join(' | ')
    case 'intersection':
      return type.types.map((each) => (isFunction(each) || each.type === 'union' ? `(${typeText(each)})` : typeText(each))).join(' & ')
    case 'array':
      return ['union', 'intersection', 'typeOperator', 'conditional'].includes(type.elementType.type) || isFunction(type.elementType)
        ? `(${typeText(type.elementType)})[]`
        : `${typeText(type.elementType)}[]`
    case 'tuple':
      return `[${type.elements.map(typeText).join(', ')}]`
    case 'namedTupleMember':
      return `${type.name}${type.isOptional ? '?' : ''}: ${typeText(type.element)}`
    case 'rest':
      return `...${typeText(type.elementType)}`
    case 'optional':
      return `${typeText(type.elementType)}?`
    case 'typeOperator':
      return `${type.operator} ${typeText(type.target)}`
    case 'reference':
      return (
        type.name + (type.typeArguments?.length > 0 ? `<${type.typeArguments.map(typeText).join(', ')}>`.replace(/(?:, any)+>$/, '>') : '')
      )
    case 'literal':
      return typeof type.value === 'string' ? `'${type.value}'` : String(type.value)
    case 'conditional':
      return `${typeText(type.checkType)} extends ${typeText(type.extendsType)} ? ${typeText(type.trueType)} : ${typeText(type.falseType)}`
    default:
      return String(type)
  }
}

const isFunction = (type) => type.type === 'reflection' && type.declaration.signatures?.length > 0 && !type.declaration.children?.length

function objectText(declaration) {
  const calls = declaration.signatures ?? []
  const children = declaration.children ?? []
  if (calls.length === 1 && children.length === 0) {
    const [call] = calls
    const word = is(call, ReflectionKind.ConstructorSignature) ? 'new ' : ''
    return `${word}${generics(call)}(${(call.parameters ?? []).map(paramText).join(', ')}) => ${typeText(call.type)}`
  }
  const parts = [
    ...calls.map((call) => callText(call, '')),
    ...(declaration.indexSignatures ?? []).map((index) => `[${index.parameters.map(paramText).join(', ')}]: ${typeText(index.type)}`),
    ...children.flatMap((child) => memberTexts(child)),
  ]
  return parts.length === 0 ? '{}' : `{ ${parts.join('; ')} }`
}

/** An alias of many alternatives has one on each line. */
function wrapped(text) {
  if (text.length <= LINE || !text.includes(' | ') || /[({<]/.test(text)) return text
  return `\n  | ${text.split(' | ').join('\n  | ')}`
}

// ---- what a comment says ----

function described(comment, tools) {
  if (comment === undefined) return []
  const returns = comment.getTag('@returns')
  return [inline(comment.summary, tools), ...(returns === undefined ? [] : [`**Returns** ${inline(returns.content, tools)}`])].filter(
    Boolean,
  )
}

function parameters(reflection, tools) {
  const known = new Map()
  for (const call of callsOf(reflection)) {
    for (const param of call.parameters ?? []) {
      const text = param.comment === undefined ? '' : inline(param.comment.summary, tools)
      if (text !== '') known.set(param.name, text)
    }
  }
  return known.size === 0 ? [] : [[...known].map(([name, text]) => `- ${code(name)}: ${text}`).join('\n')]
}

function throwing(comment, tools) {
  const tags = comment?.blockTags.filter(({ tag }) => tag === '@throws') ?? []
  if (tags.length === 0) return []
  const texts = tags.map(({ content }) => inline(content, tools))
  return [`**Fails with** ${texts.join(' · ')}`]
}

/** An error code leads to its section. */
const linkErrors = (text, { errorPages }) =>
  text.replace(/^`([A-Z_0-9]+)`$|\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b/g, (all, quoted, bare) =>
    errorPages.has(quoted ?? bare) ? `[${code(quoted ?? bare)}](${errorPages.get(quoted ?? bare)})` : all,
  )

function examples(comment) {
  const tags = comment?.blockTags.filter(({ tag }) => tag === '@example') ?? []
  return tags.map(({ content }) => {
    const text = content
      .map(({ text: each }) => each)
      .join('')
      .trim()
    return text.startsWith('```') ? text : fence(text)
  })
}

/** The parts of a comment as markdown on one page: nothing in it is taken for HTML or for Vue. */
export function inline(parts, tools) {
  const texts = parts.map((part) => {
    if (part.kind === 'code') return linkErrors(part.text, tools)
    if (part.kind === 'inline-tag') return linked(part, tools)
    return part.text
      .split(INDENTED)
      .map((text, i) => (i % 2 === 1 ? `\n\n${fence(text.replaceAll(/^ {4}/gm, '').trimEnd())}\n\n` : linkErrors(escaped(text), tools)))
      .join('')
  })
  return texts.join('').trim()
}

/** A block of code in a comment. */
const INDENTED = /\n\n((?: {4}.*(?:\n|$))+)/

function linked({ text, target }, tools) {
  const place = typeof target === 'object' && target !== null && 'kind' in target ? tools.placeOf(target) : undefined
  return place === undefined ? code(text) : `[${code(text)}](${place})`
}

const escaped = (text) => text.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')

export const code = (text) => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)
const fence = (text) => `\`\`\`ts\n${text}\n\`\`\``

// ---- members ----

const MEMBERS =
  ReflectionKind.Property | ReflectionKind.Method | ReflectionKind.Accessor | ReflectionKind.Variable | ReflectionKind.Function

function members(reflection, tools) {
  const holder = reflection.children !== undefined ? reflection : reflection.type?.type === 'reflection' ? reflection.type.declaration : {}
  const all = (holder.children ?? []).filter((child) => is(child, MEMBERS) && !child.flags.isProtected && !child.name.startsWith('['))
  // An interface shows all its members: the interface that it extends may be in no door.
  const own = all.filter((child) => !child.inheritedFrom || is(reflection, ReflectionKind.Interface))
  const inherited = all.filter((child) => child.inheritedFrom && is(reflection, ReflectionKind.Class))
  const isMethod = (child) => methodOf(child) !== undefined && tools.functionOf(child.name) !== undefined
  const sections = own.filter((child) => !isMethod(child)).map((child) => member(child, tools))
  const lines = sections.length === 0 ? [] : ['**Members**', sections.join('\n')]
  const methods = own.filter(isMethod).sort((a, b) => (a.name < b.name ? -1 : 1))
  if (methods.length > 0) {
    const links = methods.map(({ name }) => `[${code(name)}](${tools.functionOf(name)})`)
    lines.push(
      `**Operations as methods.** \`x.add(y)\` is \`add(x, y)\`, and so for each name below. A name with \`_\` at its end changes \`x\` in place.`,
      links.join(' · '),
    )
  }
  if (inherited.length > 0) lines.push(`**Inherited:** ${inherited.map(({ name }) => code(name)).join(', ')}`)
  return lines
}

function member(child, tools) {
  const comment = commentOf(child) ?? child.getSignature?.comment
  const text = comment === undefined ? '' : inline(comment.summary, tools)
  const fails = throwing(comment, tools).map((line) => line.replace('**Fails with**', 'Fails with'))
  const words = [text, ...fails].filter(Boolean).join(' ').replaceAll('\n', ' ')
  const shown = memberTexts(child)
  return `- ${shown.map(code).join(' ')}${words === '' ? '' : `<br>${words}`}`
}

function memberTexts(child) {
  const optional = child.flags.isOptional ? '?' : ''
  const calls = child.signatures ?? []
  const word = child.flags.isStatic ? 'static ' : ''
  if (calls.length > 0) return calls.map((call) => `${word}${oneLine(callText(call, child.name))}`)
  const type = child.getSignature?.type ?? child.type
  if (type?.type === 'reflection' && type.declaration.signatures?.length > 1 && !type.declaration.children?.length)
    return type.declaration.signatures.map((call) => oneLine(callText(call, child.name)))
  const method = methodOf(child)
  if (method !== undefined) return [`${word}${child.name}(${method.params}): ${typeText(method.result)}`]
  return [`${word}${child.name}${optional}: ${typeText(type)}`]
}

/** A property `(...rest: [b: Tensor]) => Tensor`, which an operation adds to Tensor, reads as the method that it is. */
function methodOf(child) {
  const [call, ...more] = child.type?.type === 'reflection' ? (child.type.declaration.signatures ?? []) : []
  const [rest, ...others] = call?.parameters ?? []
  if (more.length > 0 || others.length > 0 || rest?.flags.isRest !== true || rest.type?.type !== 'tuple') return undefined
  return { params: rest.type.elements.map(typeText).join(', '), result: call.type }
}

const oneLine = (text) =>
  text
    .replaceAll(/\(\n {2}/g, '(')
    .replaceAll(',\n)', ')')
    .replaceAll(/\n\s*/g, ' ')

// ---- the types that a signature names ----

function typesOf(reflection, tools) {
  const found = new Map()
  const look = (type) => {
    if (type === undefined || type === null || typeof type !== 'object') return
    if (type.type === 'reference' && type.reflection !== undefined && !is(type.reflection, ReflectionKind.TypeParameter)) {
      const place = tools.placeOf(type.reflection)
      if (place !== undefined && type.name !== 'Tensor' && !['WithInPlace', 'Functional'].includes(type.name)) found.set(type.name, place)
    }
    for (const each of type.typeArguments ?? type.types ?? type.elements ?? []) look(each)
    for (const each of [type.elementType, type.target, type.element, type.checkType, type.extendsType, type.trueType, type.falseType]) {
      if (typeof each === 'object') look(each)
    }
    if (type.type === 'reflection') lookInto(type.declaration)
  }
  const lookInto = (declaration) => {
    const constructors = declaration.children?.filter((child) => is(child, ReflectionKind.Constructor)) ?? []
    for (const call of [...(declaration.signatures ?? []), ...constructors.flatMap(({ signatures }) => signatures ?? [])]) {
      for (const param of call.parameters ?? []) look(param.type)
      if (!is(call, ReflectionKind.ConstructorSignature)) look(call.type)
    }
  }
  lookInto(reflection)
  look(reflection.type)
  for (const type of reflection.extendedTypes ?? []) look(type)
  if (is(reflection, ReflectionKind.Interface)) for (const child of reflection.children ?? []) look(child.type)
  found.delete(reflection.name)
  return found.size === 0 ? [] : [`See also ${[...found].map(([name, place]) => `[${code(name)}](${place})`).join(', ')}.`]
}
