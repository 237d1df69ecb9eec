/** Everything that can be typed. Parsing, help and completion all come from this table. */
export type Option = {
  name: string
  short?: string
  /** The word for its value in help; without it the option is a switch. */
  value?: string
  about: string
  /** What completes its value. */
  completes?: 'file' | 'directory'
}

export type Command = {
  name: CommandName
  args: string
  about: string
  options: readonly Option[]
  /** What completes its arguments. */
  completes: 'file' | 'directory' | readonly string[]
}

export type CommandName = 'scan' | 'watch' | 'result' | 'login' | 'logout' | 'me' | 'completion'

export const shells = ['bash', 'zsh', 'fish'] as const

const json: Option = { name: 'json', about: 'write one line of JSON for each file, and no summary' }
const nsfw: Option = { name: 'nsfw', about: 'look for NSFW content in images instead of malware' }
const infected: Option = { name: 'infected', short: 'i', about: 'leave out the lines of clean files' }
const noSummary: Option = { name: 'no-summary', about: 'leave out the summary' }
const parallel: Option = { name: 'parallel', value: 'N', about: 'scan up to N files at a time (default 8)' }
const timeout: Option = {
  name: 'timeout',
  value: 'seconds',
  about: 'give up on a file after this time (default 600; waiting for a background scan 3600)',
}
export const help: Option = { name: 'help', short: 'h', about: 'show this' }
export const version: Option = { name: 'version', about: 'show the version' }

export const commands: readonly Command[] = [
  {
    name: 'scan',
    args: '<path|pattern|url|->...',
    about: 'Scans files, whole directories, URLs, or standard input (-).',
    options: [
      nsfw,
      infected,
      json,
      noSummary,
      parallel,
      { name: 'name', value: 'name', about: 'what standard input is called (default stdin)' },
      { name: 'submit', about: 'scan in the background, and print ids instead of verdicts' },
      { name: 'wait', about: 'with --submit: wait for the verdicts' },
      { name: 'callback', value: 'url', about: 'with --submit: have each result sent there by POST' },
      timeout,
    ],
    completes: 'file',
  },
  {
    name: 'watch',
    args: '<directory>',
    about: 'Scans what is in a directory and what arrives in it, until it is interrupted.',
    options: [
      { name: 'move-threats', value: 'directory', about: 'move threats there', completes: 'directory' },
      { name: 'delete-threats', about: 'delete threats' },
      { name: 'settle', value: 'seconds', about: 'how long a file must have stayed the same (default 2)' },
      { name: 'interval', value: 'seconds', about: 'how often to look for new files (default 2)' },
      nsfw,
      infected,
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
    about: 'Shows the results of background scans.',
    options: [{ name: 'wait', about: 'wait for those that are pending' }, nsfw, json, timeout],
    completes: [],
  },
  {
    name: 'login',
    args: '',
    about: 'Stores the address of the service and an API key, once they are known to work.',
    options: [
      { name: 'url', value: 'address', about: 'the address, as https://scan.example.com' },
      {
        name: 'key-file',
        value: 'file',
        about: 'read the key from this file; - is standard input',
        completes: 'file',
      },
    ],
    completes: [],
  },
  { name: 'logout', args: '', about: 'Forgets the stored address and key.', options: [], completes: [] },
  {
    name: 'me',
    args: '',
    about: 'Shows the account: its plan, credits and period.',
    options: [{ name: 'json', about: 'write JSON' }],
    completes: [],
  },
  {
    name: 'completion',
    args: shells.join('|'),
    about: 'Writes a script that has the shell complete these commands.',
    options: [],
    completes: shells,
  },
]
