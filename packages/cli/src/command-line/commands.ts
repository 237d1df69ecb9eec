/** Version of package.json, which the built package has in another place; a test compares the two. */
export const versionText = '0.1.0'

export type Option = {
  name: string
  short?: string
  /** Placeholder of the value in the help; an option without one takes no value. */
  value?: string
  about: string
  /** Kind of path that the shell offers for the value. */
  completes?: 'file' | 'directory'
}

export type Command = {
  name: CommandName
  args: string
  about: string
  options: readonly Option[]
  /** Kind of path, or the words, that the shell offers for the arguments. */
  completes: 'file' | 'directory' | readonly string[]
}

export type CommandName = 'scan' | 'watch' | 'result' | 'listen' | 'login' | 'logout' | 'me' | 'completion'

export const shells = ['bash', 'zsh', 'fish'] as const

const json: Option = { name: 'json', about: 'print one line of JSON per file and no summary' }
const nsfw: Option = { name: 'nsfw', about: 'scan images for NSFW content instead of malware' }
const infected: Option = { name: 'infected', short: 'i', about: 'do not print clean files' }
const strict: Option = { name: 'strict', about: 'exit with 2 if the service scans without ClamAV or its databases' }
const noSummary: Option = { name: 'no-summary', about: 'do not print the summary' }
const parallel: Option = { name: 'parallel', value: 'N', about: 'scan up to N files at the same time (default 8)' }
const timeout: Option = {
  name: 'timeout',
  value: 'seconds',
  about: 'time limit per file (default 600; 3600 for a background scan)',
}
export const help: Option = { name: 'help', short: 'h', about: 'show this help' }
export const version: Option = { name: 'version', about: 'show the version' }

/** All commands. Parsing, help and completion are built from this table. */
export const commands: readonly Command[] = [
  {
    name: 'scan',
    args: '<path|pattern|url|->...',
    about: 'Scan files, directories, URLs or standard input (-).',
    options: [
      nsfw,
      infected,
      strict,
      json,
      noSummary,
      parallel,
      { name: 'name', value: 'name', about: 'name for standard input (default stdin)' },
      { name: 'submit', about: 'scan in the background and print ids instead of verdicts' },
      { name: 'wait', about: 'with --submit: wait for the verdicts' },
      { name: 'callback', value: 'url', about: 'with --submit: send each result to this URL by POST' },
      timeout,
    ],
    completes: 'file',
  },
  {
    name: 'watch',
    args: '<directory>',
    about: 'Scan the files in a directory and new files that arrive, until interrupted.',
    options: [
      { name: 'move-threats', value: 'directory', about: 'move threats to this directory', completes: 'directory' },
      { name: 'delete-threats', about: 'delete threats' },
      { name: 'settle', value: 'seconds', about: 'scan a file once it has not changed for this time (default 2)' },
      { name: 'interval', value: 'seconds', about: 'time between checks for new files (default 2)' },
      nsfw,
      infected,
      strict,
      json,
      noSummary,
      parallel,
      timeout,
    ],
    completes: 'directory',
  },
  {
    name: 'result',
    args: '<id>...',
    about: 'Show the results of background scans.',
    options: [{ name: 'wait', about: 'wait for pending results' }, nsfw, strict, json, timeout],
    completes: [],
  },
  {
    name: 'listen',
    args: '',
    about: 'Show the webhooks of the account as they are sent, and forward them, until interrupted.',
    options: [
      {
        name: 'forward-to',
        value: 'url',
        about: 'send each webhook to this URL too, with its signatures, such as http://localhost:3000/hook',
      },
      { name: 'json', about: 'print one line of JSON per webhook' },
    ],
    completes: [],
  },
  {
    name: 'login',
    args: '',
    about: 'Verify and store the address of the service and an API key.',
    options: [
      { name: 'url', value: 'address', about: 'address of the service, such as https://scan.example.com' },
      {
        name: 'key-file',
        value: 'file',
        about: 'read the key from this file, or from standard input (-)',
        completes: 'file',
      },
    ],
    completes: [],
  },
  { name: 'logout', args: '', about: 'Remove the stored address and key.', options: [], completes: [] },
  {
    name: 'me',
    args: '',
    about: 'Show plan, credits and period of the account.',
    options: [{ name: 'json', about: 'print JSON' }],
    completes: [],
  },
  {
    name: 'completion',
    args: shells.join('|'),
    about: 'Print a completion script for a shell.',
    options: [],
    completes: shells,
  },
]
