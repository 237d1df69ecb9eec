/** A command, identified by its beginning, that no test types: the reason, and what is tested instead. */
type Exception = { documents: string[]; command: string; because: string; instead: string }

const readme = 'acceptance/documents/readme.test.ts'
const installing = {
  because: 'a test run has its packages already',
  instead: `${readme} types it in a fresh copy, as an ordinary user`,
}
const building = {
  because: 'it writes into the repository, where others read at the same time',
  instead: 'packages/client/test/build.test.ts and packages/cli/test/build.test.ts build into a directory of their own',
}
const developing = (command: string, because: string) => ({
  documents: ['CONTRIBUTING.md'],
  command,
  because,
  instead: 'its names are looked up',
})
const packaging = (command: string, because: string, instead: string) => ({
  documents: ['docs/packaging.md'],
  command,
  because,
  instead,
})
const files = 'packages/server/test/packaging holds the files it names to what they promise'
const archived = 'npm run release -- --dry-run unpacks and starts it'
const checkedByScript = `npm run check:packaging does it; ${files}`

export const exceptions: Exception[] = [
  { documents: ['docs/operating.md', 'CONTRIBUTING.md'], command: 'npm ci', ...installing },
  { documents: ['docs/quickstart.md'], command: 'npm ci && npm start', ...installing },
  {
    documents: ['README.md'],
    command: 'npm ci && npm test',
    because: 'it is the run that this is a part of',
    instead: `${readme} holds the text to what CI runs`,
  },
  { documents: ['docs/clients.md'], command: 'cd packages/client && npm run build', ...building },
  { documents: ['docs/command-line.md'], command: 'cd packages/cli && npm run build', ...building },
  { documents: ['docs/command-line.md'], command: 'npm pack ./dist', ...building },
  {
    documents: ['docs/command-line.md'],
    command: 'npm install --global',
    because: 'it changes the machine',
    instead: 'packages/cli/test/build.test.ts installs into a directory of its own',
  },
  {
    documents: ['docs/interface.md'],
    command: 'curl -H "X-API-Key: $KEY" -F file=@report.pdf',
    because: 'the engine must be away for ten seconds',
    instead: 'acceptance/malware/resilience.test.ts stops it and asks',
  },
  {
    documents: ['docs/regions.md'],
    command: 'npm start',
    because: 'the test talks to that service, and must know its port',
    instead: 'the test starts it with what the block exports',
  },
  {
    documents: ['docs/knowledge.md'],
    command: 'npm run assay -- sources',
    because: 'it downloads from publishers',
    instead: 'acceptance/malware/sources.ts types the commands with a publisher of its own',
  },
  developing('npm start', 'it would take the data directory of whoever runs the tests'),
  developing('npm test', 'it is the run that this is a part of'),
  developing('npm run check', 'it takes a minute, and CI runs it beside the tests'),
  developing('npm run fix', 'it writes into the repository'),
  packaging('docker build', 'there is no Docker here, and no registry', checkedByScript),
  packaging('docker run', 'there is no Docker here', checkedByScript),
  packaging('docker logs', 'there is no Docker here', checkedByScript),
  packaging('docker exec', 'there is no Docker here', 'the command in it is typed from docs/operator-commands.md'),
  packaging('docker compose', 'there is no Docker here', `${files}; the schema of compose does so too`),
  packaging('sudo apt-get', 'it changes the machine', 'npm test installs the same where it may'),
  packaging('tar -xzf assay-', 'building the archive takes minutes', archived),
  packaging('cd assay-0.1.0-linux-x64', 'building the archive takes minutes', archived),
  packaging('./assay serve', 'building the archive takes minutes', archived),
  packaging('sudo mkdir /opt/assay', 'it changes the machine', checkedByScript),
  packaging('sudo tar', 'it changes the machine', checkedByScript),
  packaging('sudo /opt/assay/assay service install', 'it changes the machine', checkedByScript),
  packaging('sudo -u assay', 'there is no such user', 'the command in it is typed from docs/operator-commands.md'),
  packaging(
    'helm install',
    'there is no cluster here',
    'packages/server/test/packaging/chart.test.ts renders the chart',
  ),
  packaging('kubectl', 'there is no cluster here', `npm run check:packaging renders the manifests; ${files}`),
  packaging('npm run check:packaging', 'it takes minutes, and root', 'its name is looked up'),
  packaging('npm run check:fresh-machine', 'it takes minutes, and root', 'its name is looked up'),
]

export const findException = (document: string, command: string): Exception | undefined =>
  exceptions.find((one) => one.documents.includes(document) && command.startsWith(one.command))
