import { CommanderError } from 'commander'
import { makeProgram } from '../../src/commands/program.ts'

export type Asked = { args: string[]; settings: NodeJS.ProcessEnv }
export type Ended = { code: number; out: string; err: string }

/** Runs commands that a test asks for, one after the other: to start the program takes a second each time. */
process.on('message', async ({ args, settings }: Asked) => {
  Object.assign(process.env, settings)
  process.exitCode = 0
  const ended = await runCaptured(args)
  process.send?.(ended)
})

async function runCaptured(args: string[]): Promise<Ended> {
  const { stdout, stderr } = process
  const write = { out: stdout.write, err: stderr.write }
  const said = { out: '', err: '' }
  const keep = (where: keyof typeof said) => (text: string) => {
    said[where] += text
    return true
  }
  Object.assign(stdout, { write: keep('out') })
  Object.assign(stderr, { write: keep('err') })
  try {
    await (await makeProgram(args)).parseAsync(args, { from: 'user' })
    return { ...said, code: Number(process.exitCode ?? 0) }
  } catch (error) {
    if (error instanceof CommanderError) return { ...said, code: error.exitCode === 0 ? 0 : 2 }
    return { ...said, err: `${(error as Error).message}\n`, code: 1 }
  } finally {
    Object.assign(stdout, { write: write.out })
    Object.assign(stderr, { write: write.err })
  }
}
