import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { alreadyTested } from '../support/scanning.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const documents = [
  ...readdirSync(repository).filter((name) => name.endsWith('.md')),
  ...['docs', 'bench', 'packages/client']
    .flatMap((dir) =>
      readdirSync(join(repository, dir), { recursive: true, encoding: 'utf8' }).map((name) => join(dir, name)),
    )
    .filter((path) => path.endsWith('.md') && !path.includes('node_modules') && !path.includes('dist/')),
]

test('every link between documents leads to a file and a heading that are there', { skip: alreadyTested }, () => {
  const dead = documents.flatMap((path) => findLinks(path).flatMap((target) => findFault(path, target)))
  assert.deepEqual(dead, [])
})

test('docs/README.md leads to every document', { skip: alreadyTested }, () => {
  const linked = findLinks('docs/README.md')
  const unlinked = readdirSync(join(repository, 'docs')).filter(
    (name) => name.endsWith('.md') && name !== 'README.md' && !linked.includes(name),
  )
  assert.deepEqual(unlinked, [])
})

test('docs/verdicts.md tells what to do about every signal', { skip: alreadyTested }, () => {
  const explained = findSignals('docs/verdicts.md')
  const named = ['interface', 'test-mode', 'operating', 'engines', 'troubleshooting'].flatMap((name) => [
    ...findSignals(`docs/${name}.md`),
  ])
  assert(named.length > 10)
  assert.deepEqual(
    named.filter((signal) => !explained.has(signal)),
    [],
  )
})

const read = (path: string) => readFileSync(join(repository, path), 'utf8')

/** Reads a document without its code blocks, which contain no links. */
const readProse = (path: string) => read(path).replaceAll(/^( *)```.*?^\1```$/gms, '')

const findLinks = (path: string): string[] =>
  [
    ...readProse(path)
      .replaceAll(/`[^`\n]*`/g, 'code')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))

function findFault(from: string, target: string): string[] {
  const [file = '', heading] = target.split('#')
  const path = file === '' ? from : normalize(join(dirname(from), file))
  if (!existsSync(join(repository, path))) return [`${from}: ${target}: no such file`]
  if (heading === undefined) return []
  if (statSync(join(repository, path)).isDirectory()) return [`${from}: ${target}: a directory has no headings`]
  return findHeadings(path).includes(heading) ? [] : [`${from}: ${target}: no such heading`]
}

/** As GitHub makes anchors of them: small letters, no punctuation, blanks as hyphens, a number on those that come again. */
function findHeadings(path: string): string[] {
  const seen = new Map<string, number>()
  return [...readProse(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => {
    const letters = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    const anchor = letters.trim().replaceAll(/\s/g, '-')
    const before = seen.get(anchor) ?? 0
    seen.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  })
}

const findSignals = (path: string) => new Set([...read(path).matchAll(/\b(?:Error|Classification):\w+/g)].map(String))
