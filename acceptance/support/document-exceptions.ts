/** A command that no test types, by how it begins, in these documents; `because` says why, `instead` what is done. */
type Exception = { documents: string[]; command: string; because: string; instead: string }

const installed = {
  because: 'a test run has its packages already',
  instead: 'acceptance/documents/readme.test.ts installs into a fresh copy, as root and as an ordinary user',
}
export const exceptions: Exception[] = [
  { documents: ['docs/operating.md', 'CONTRIBUTING.md'], command: 'npm ci', ...installed },
  { documents: ['docs/quickstart.md'], command: 'npm ci && npm start', ...installed },
  {
    documents: ['docs/interface.md'],
    command: 'curl -H "X-API-Key: $KEY" -F file=@report.pdf',
    because: 'the engine must be away for ten seconds',
    instead: 'acceptance/malware/resilience.test.ts stops it and asks',
  },
]

export const findException = (document: string, command: string): Exception | undefined =>
  exceptions.find((one) => one.documents.includes(document) && command.startsWith(one.command))
