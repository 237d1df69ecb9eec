import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { readCodeBlocks } from './code-blocks.ts'
import { type Step, toSteps } from './document-commands.ts'
import { findException } from './document-exceptions.ts'
import { getTaker } from './document-runners.ts'
import { isRunning } from './processes.ts'
import { newShownOutput } from './shown-output.ts'
import { openTerminal } from './terminal.ts'
import { waitUntil } from './wait-until.ts'
import { runRepeated, saveNpm } from './without-npm.ts'

/** Functions for the preparation of a command. */
type Stage = {
  /** Sets the value that stands for a value of the document in this run. */
  learn(shown: string, real: string): void
  /** Returns the value that a command printed in the place of this value of the document. */
  find(shown: string): string
  /** Returns the output of the service that the document started. */
  greeting(): string
}
/** Prepares a command; may return settings for the block that begins with it. */
type Preparation = (stage: Stage) => Promise<NodeJS.ProcessEnv | undefined> | NodeJS.ProcessEnv | undefined

type Plan = {
  /** Documents in the order in which they are followed, with one service and one set of known values. */
  documents: string[]
  test: string
  dir: string
  env: NodeJS.ProcessEnv
  /** Texts of the document and their replacements in this run, longer ones first. */
  values(): [string, string][]
  /** Preparations by the beginning of the command that they precede. */
  before: Record<string, Preparation>
  /** Reasons to skip a block by the beginning of its first command. */
  skip?: Record<string, string | false>
}

/** Runs the commands of documents in order, a shell for each block, and compares their output with the documents. */
export function followDocument({ documents, test: file, dir, env, values, before, skip = {} }: Plan) {
  const output = newShownOutput()
  const toHere = (text: string) => values().reduce((so, [shown, real]) => so.replaceAll(shown, real), text)
  const unused = new Set(Object.keys(before))
  let service: RunningService | undefined
  const stage: Stage = {
    learn: output.learn,
    find: output.toReal,
    greeting: () => service?.said() ?? '',
  }

  async function prepare(command: string) {
    const name = Object.keys(before).find((begin) => command.startsWith(begin))
    if (name === undefined) return undefined
    unused.delete(name)
    return await before[name]?.(stage)
  }

  /** Compares the output. A command without documented output must only succeed. */
  function requireSame(command: string, shown: string, { said, code }: { said: string; code: string | undefined }) {
    if (shown.trim() !== '') return output.require(command, toHere(shown), said)
    assert.equal(code, '0', `$ ${command}\n${said}`)
    // curl also succeeds when the service refuses the request, and a 401 has no body.
    if (command.startsWith('curl')) assert.match(said, /^(?!.*"status":[45]\d\d).*\S/, `$ ${command}\n${said}`)
  }

  /** Types a block. A service that it starts with settings of its own ends with the block; any other runs on. */
  async function follow(steps: Step[]) {
    const settings = await prepare(steps[0]?.command ?? '')
    const blockEnv = { ...env, ...settings }
    const terminal = openTerminal(dir, blockEnv)
    // Only the shell has what an earlier command exports.
    const hasExports = steps.some(({ command }) => command.startsWith('export '))
    const see = (typed: string) =>
      (hasExports ? undefined : runRepeated(typed, { env: blockEnv, cwd: dir, test: file })) ?? terminal.see(typed)
    let own: RunningService | undefined
    try {
      for (const [n, { command, shown }] of steps.entries()) {
        if (n > 0) await prepare(command)
        const typed = saveNpm(output.toReal(toHere(command)), file)
        if (!isStart(command)) requireSame(command, shown, await see(typed))
        else {
          if (settings === undefined) await service?.stop()
          own = await startService(terminal, typed, dir)
          await waitUntil(`an answer of ${typed}`, () => own?.hasSaid(shown) === true, 60_000)
          requireSame(command, shown, { said: own.said(), code: own.said().includes('ready') ? '0' : '1' })
        }
      }
    } finally {
      if (settings === undefined && own !== undefined) service = own
      else {
        await own?.stop()
        await terminal.close()
      }
    }
  }

  describe(`the commands of ${documents.join(', ')}`, () => {
    after(() => service?.stop())
    for (const document of documents) {
      const takes = getTaker(document, file)
      for (const block of readCodeBlocks(document).filter(takes)) {
        const steps = toSteps(block).filter(({ command }) => findException(document, command) === undefined)
        const [first = ''] = steps.map(({ command }) => command)
        const lacking = Object.entries(skip).find(([begin]) => first.startsWith(begin))?.[1] ?? false
        const name = `${document}:${block.line}: ${first.split('\n', 1)}`
        test(name, { skip: lacking }, () => follow(steps))
      }
    }
    test('all that is prepared is needed', () => assert.deepEqual([...unused], []))
  })
}

const isStart = (command: string) => /\bnpm start\b|assay -- serve\b/.test(command)

/** Starts the service in the background, as in a terminal of its own. Standard error tells why it refused to start. */
async function startService(terminal: ReturnType<typeof openTerminal>, command: string, dir: string) {
  const name = `service-${Date.now()}`
  // The shell may print the process id before the background process has created its output files.
  const files = `touch ${name}.out ${name}.err`
  const pid = Number(await terminal.type(`${files}; ${command} > ${name}.out 2> ${name}.err & echo $!`))
  const read = (end: string) => readFileSync(join(dir, `${name}.${end}`), 'utf8')
  // npm prints a header of lines that begin with >. It may be incomplete when it is read.
  const said = () => read('out').replace(/^\n(> .*(\n|$))*\n?/, '') + (isRunning(pid) ? '' : read('err'))
  return {
    said,
    hasSaid: (shown: string) =>
      !isRunning(pid) || said().split('\n').length > Math.max(1, shown.trim().split('\n').length),
    async stop() {
      if (isRunning(pid)) process.kill(pid)
      await waitUntil('the service to stop', () => !isRunning(pid))
      await terminal.close()
    },
  }
}
type RunningService = Awaited<ReturnType<typeof startService>>
