import type { CodeBlock } from './code-blocks.ts'
import { isShell, isTranscript, toSteps } from './document-commands.ts'
import { findException } from './document-exceptions.ts'

/** A test file and the blocks of a document whose commands it types. */
type Runner = { document: string; test: string; takes(block: CodeBlock): boolean }

const guides = ['quickstart', 'integrate', 'verdicts', 'webhooks', 'moving', 'receipts', 'security', 'faq']
const references = ['webhooks', 'listeners', 'interface', 'test-mode', 'test-images/README']
const operating = ['operating', 'settings', 'operator-commands', 'engines', 'knowledge']
const callsOperator = (block: CodeBlock) => isShell(block) && block.text.startsWith('npm run assay')

/** Assigns the blocks of all documents to tests. complete.test.ts fails when a block belongs to no test. */
export const runners: Runner[] = [
  { document: 'README.md', test: 'acceptance/documents/readme.test.ts', takes: isShell },
  ...guides.map((name) => ({
    document: `docs/${name}.md`,
    test: 'acceptance/documents/guides.test.ts',
    takes: isShell,
  })),
  ...references.map((name) => ({
    document: `docs/${name}.md`,
    test: 'acceptance/documents/references.test.ts',
    takes: isTranscript,
  })),
  { document: 'docs/packaging.md', test: 'acceptance/documents/references.test.ts', takes: isShell },
  { document: 'docs/console.md', test: 'acceptance/documents/references.test.ts', takes: callsOperator },
  {
    document: 'docs/console.md',
    test: 'acceptance/documents/console.test.ts',
    takes: (block) => isShell(block) && !callsOperator(block),
  },
  ...operating.map((name) => ({
    document: `docs/${name}.md`,
    test: 'acceptance/documents/operating.test.ts',
    takes: isTranscript,
  })),
  { document: 'docs/languages.md', test: 'acceptance/documents/languages.test.ts', takes: isShell },
  { document: 'docs/regions.md', test: 'acceptance/lifecycle/regions.test.ts', takes: isShell },
  { document: 'docs/test-mode.md', test: 'acceptance/test-mode/alone.test.ts', takes: isShell },
  { document: 'docs/platforms.md', test: 'acceptance/listeners/platforms.test.ts', takes: isShell },
  { document: 'docs/command-line.md', test: 'packages/cli/test/document.test.ts', takes: isShell },
]

/** Returns a function that tells whether this test types a block of the document. */
export function getTaker(document: string, test: string): (block: CodeBlock) => boolean {
  const runner = runners.find((one) => one.document === document && test.endsWith(one.test))
  if (runner === undefined) throw new Error(`document-runners.ts does not know that ${test} runs ${document}.`)
  return (block) => runner.takes(block) && !toSteps(block).every(({ command }) => findException(document, command))
}

/** Lists the documents whose commands a test types. */
export const listDocuments = (test: string): string[] =>
  runners.filter((one) => test.endsWith(one.test)).map(({ document }) => document)
