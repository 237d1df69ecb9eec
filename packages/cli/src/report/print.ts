import { exitCodes } from '../exit-codes.ts'
import { openOutput } from './output.ts'

/** All that a short command has to say; gives the exit code. */
export async function print(text: string): Promise<number> {
  let code: number = exitCodes.clean
  const output = openOutput((sentence) => {
    code = exitCodes.error
    process.stderr.write(`assay-scan: ${sentence}\n`)
  })
  output.write(text)
  await output.flush()
  return code
}
