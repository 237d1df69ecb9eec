import { readFileSync } from 'node:fs'
import { programFile } from './run-program.ts'
import { runShared } from './shared-commands.ts'

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: { assay: string; start: string }
}
/** Without `exec`, which would replace the shell of the test. */
const assay = scripts.assay.replace(/^exec /, '')
const readme = 'acceptance/documents/readme.test.ts'
const operating = 'acceptance/documents/operating.test.ts'
const guides = 'acceptance/documents/guides.test.ts'
/** Parts of commands that documents show, what npm runs for them, and the test that runs the first of them through npm. */
const commands: [shown: RegExp, run: string, test: string][] = [
  [/\bnpm run --silent assay -- /g, `${assay} `, operating],
  [/\bnpm run assay -- /g, `${assay} `, readme],
  [/\bnpm start$/g, `sh -c '${scripts.start}'`, operating],
  [/\bnpx node /g, 'node ', guides],
]
const seen = new Set<RegExp>()

/**
 * Replaces npm in a command by what npm runs: npm takes as much processor time as the operator's program. One test types
 * the first command of a kind through npm.
 */
export function saveNpm(command: string, testFile: string): string {
  return commands.reduce((typed, [shown, run, test]) => {
    if (typed.search(shown) < 0) return typed
    const isFirst = testFile.endsWith(test) && !seen.has(shown)
    seen.add(shown)
    return isFirst ? typed : typed.replaceAll(shown, run)
  }, command)
}

const assignment = '[A-Z_]+=[\\w/.-]+'
const word = '[\\w@:/.,=+-]+|"[\\w ]+"'
/** A command that a shell would only split into settings and words. */
const plain = new RegExp(`^(?:(${assignment}) )?${assay} ((?:${word})(?: +(?:${word}))*)$`)
const known = new Set<string>()

/**
 * Runs a command of the operator's program in the process that commands of this test file share. Returns undefined where
 * a shell has to run it: in the test that types all commands of the operator, the first one of each name is a program of
 * its own.
 */
export function runRepeated(typed: string, { env, cwd, test }: { env: NodeJS.ProcessEnv; cwd: string; test: string }) {
  const [, setting, words = ''] = plain.exec(typed.replaceAll(/\\\n\s*/g, '')) ?? []
  const args = [...words.matchAll(new RegExp(word, 'g'))].map(([found]) => found.replaceAll('"', ''))
  const [name = ''] = args
  if (name === '') return undefined
  if (test.endsWith(operating) && !known.has(name)) {
    known.add(name)
    return undefined
  }
  const [key, value] = setting?.split('=') ?? []
  const run = runShared(programFile, { args, env: key === undefined ? env : { ...env, [key]: value }, cwd })
  return run?.then(({ code, out, err }) => ({ said: err + out, code: String(code) }))
}
