import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { toInterruptedCode } from '../exit-codes.ts'
import { Mistake } from '../mistake.ts'

/** The person pressed Ctrl-C instead of answering. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
  readonly exitCode = toInterruptedCode('SIGINT')
}

/** Asks on the terminal. What is secret is not echoed. */
export async function ask(question: string, { isSecret }: { isSecret: boolean }): Promise<string> {
  if (!process.stdin.isTTY) throw new Mistake('There is no terminal to ask on. Give --url and --key-file.')
  process.stderr.write(question)
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? silence : process.stderr, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Cancelled()))
      lines.once('close', () => reject(new Cancelled()))
    })
  } finally {
    lines.close()
    if (isSecret) process.stderr.write('\n')
  }
}
