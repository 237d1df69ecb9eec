import type { CodeBlock } from './code-blocks.ts'
import { isShell, isTranscript, toSteps } from './document-commands.ts'
import { findException } from './document-exceptions.ts'

/** Who types the commands of which blocks. The tests named here ask this table what to type; so does the test of the table. */
type Runner = { document: string; test: string; takes(block: CodeBlock): boolean }

const transcripts = 'acceptance/documents/transcripts.test.ts'

export const runners: Runner[] = [
  { document: 'docs/operating.md', test: 'acceptance/documents/operating.test.ts', takes: isTranscript },
  ...['webhooks', 'doors', 'interface', 'test-mode', 'test-images/README'].map((name) => ({
    ...{ document: `docs/${name}.md`, test: transcripts, takes: isTranscript },
  })),
  {
    document: 'docs/console.md',
    test: transcripts,
    takes: (block) => isShell(block) && block.text.includes('npm run'),
  },
]

/** Which blocks of the document a test is to run. */
export function getTaker(document: string, test: string): (block: CodeBlock) => boolean {
  const runner = runners.find((one) => one.document === document && test.endsWith(one.test))
  if (runner === undefined) throw new Error(`document-runners.ts does not know that ${test} runs ${document}.`)
  return (block) => runner.takes(block) && !toSteps(block).every(({ command }) => findException(document, command))
}
