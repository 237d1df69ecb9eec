import { spawn } from 'node:child_process'
import { waitUntil } from './wait-until.ts'

/**
 * A shell that stays open while a document is followed: what one block exports, defines or starts in
 * the background remains for the next.
 */
export function openTerminal(cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn('sh', [], { cwd, env, detached: true })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let blocks = 0

  async function run(block: string) {
    out = ''
    err = ''
    const end = `end of block ${++blocks}:`
    child.stdin.write(`${block}\nprintf '\\n%s%s\\n' '${end}' $?\n`)
    const isDone = () => out.includes(end) && out.endsWith('\n')
    await waitUntil(`the end of\n${block}`, () => isDone() || child.exitCode !== null, 120_000)
    const [said = '', code] = out.split(`\n${end}`)
    return { said, code: code?.trim() }
  }

  return {
    /** Runs a block and returns its standard output; throws when its last command failed. */
    async type(block: string): Promise<string> {
      const { said, code } = await run(block)
      if (code !== '0') throw new Error(`${block}\nended with ${code}:\n${said}${err}`)
      return said
    },
    /** Runs a block and returns everything that it printed, also when it failed. */
    see: (block: string) => run(`{ ${block}\n} 2>&1`),
    /** Ends the shell and everything that was started in it. */
    async close() {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
      await ended
    },
  }
}
