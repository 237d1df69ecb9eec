import { readFile } from 'node:fs/promises'
import { text as readText } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import { v7 as newId } from 'uuid'
import { loadConfig } from '../config/load-config.ts'
import { type EnteredCredential, readCredential } from '../domain/downloads/credentials.ts'
import {
  type CredentialValues,
  type Header,
  maxCredentials,
  showValues,
  toTargetText,
  type UrlStyle,
} from '../domain/downloads/target.ts'
import type { ShownCredential } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeAddressPolicy } from '../domain/scans/web-address.ts'
import { toCommandActor } from '../runtime/process.ts'
import { readId, requireFound } from './options.ts'
import { addCommand, changeStores, newCommand, print, toCard, toTable, withStores } from './terminal.ts'

type AddOptions = {
  account: string
  host?: string
  bucket?: string
  region?: string
  endpoint?: string
  urlStyle?: UrlStyle
}

export function makeDownloadsCommand(): Command {
  const downloads = newCommand('downloads', 'store credentials with which the content of URLs is downloaded')

  addCommand(downloads, 'add', 'store a credential, in place of one for the same hosts or bucket')
    .argument('<file>', 'file with the secret, or - for standard input: lines such as "Authorization: Bearer ..."')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .option('--host <host>', 'host that gets the headers: files.example.com, *.example.com, https://a.example:8443')
    .option('--bucket <name>', 'bucket of S3 whose URLs are signed; the file is like ~/.aws/credentials')
    .option('--region <region>', 'region of the bucket')
    .option('--endpoint <url>', 'address of the S3 service, unless it is AWS')
    .addOption(
      new Option('--url-style <style>', 'where URLs of the endpoint name the bucket').choices(['path', 'host']),
    )
    .action(async (file: string, options: AddOptions, command: Command) => {
      const { target, values } = readEntered(toEntered(options, await readSecret(file)))
      const { account: accountId } = options
      const credential = { id: newId(), target, values, createdBy: toCommandActor() }
      const { outcome, shown } = await changeStores(async ({ downloadCredentials }, audit) => {
        const stored = await downloadCredentials.put(accountId, credential)
        if (stored === 'no-account') throw new OperatorMistake(`There is no account ${accountId}.`)
        if (stored === 'full') {
          throw new OperatorMistake(`The account has ${maxCredentials} credentials already. Remove one first.`)
        }
        const detail = toNames(values)
        await audit('download-credential.add', toTargetText(target), { accountId, detail })
        const added = (await downloadCredentials.show(accountId)).find(({ id }) => id === stored.id)
        const change = stored.isReplaced ? 'replaced' : 'added'
        return { outcome: change, shown: requireFound(added, 'such credential') }
      })
      const text = toCard({ id: shown.id, target: shown.target, values: toCell(shown.values), outcome })
      print(command, { ...toJson(shown), outcome }, text)
    })

  addCommand(downloads, 'list', 'list the credentials of an account, without their values')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .action(async ({ account }: { account: string }, command: Command) => {
      const shown = await withStores(async ({ accounts, downloadCredentials }) => {
        requireFound(await accounts.findAccount(account), `account ${account}`)
        return downloadCredentials.show(account)
      })
      const rows = shown.map((one) => [
        one.id,
        one.target,
        one.region,
        toCell(one.values),
        one.createdAt.toISOString(),
        one.createdBy,
      ])
      print(command, shown.map(toJson), toTable(['id', 'target', 'region', 'values', 'added', 'by'], rows))
    })

  addCommand(downloads, 'remove', 'remove a credential; downloads that begin afterwards do not use it')
    .argument('<target>', 'host or bucket as the list shows it, or the ID of the credential')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .action(async (wanted: string, { account: accountId }: { account: string }, command: Command) => {
      const removed = await changeStores(async ({ downloadCredentials }, audit) => {
        const all = await downloadCredentials.show(accountId)
        // Targets are stored with their protocol, which a host is entered without.
        const found = all.find(({ id, target }) => [id, target, target.replace('https://', '')].includes(wanted))
        const { id, target } = requireFound(found, `download credential ${wanted} of this account`)
        requireFound(await downloadCredentials.remove(accountId, id), `download credential ${wanted} of this account`)
        await audit('download-credential.remove', target, { accountId })
        return { id, target }
      })
      print(command, { ...removed, removed: true }, `The credential for ${removed.target} is removed.`)
    })
  return downloads
}

/** Reads the secret from a file or standard input: arguments of a program can be read by other users of the machine. */
async function readSecret(file: string): Promise<string> {
  if (file === '-') return readText(process.stdin)
  return readFile(file, 'utf8').catch((error) => {
    throw new OperatorMistake(`${file} cannot be read: ${error.message}.`, { cause: error })
  })
}

function toEntered({ host, bucket, region, endpoint, urlStyle }: AddOptions, secret: string): EnteredCredential {
  if ((host === undefined) === (bucket === undefined)) {
    throw new OperatorMistake('Name either --host or --bucket.')
  }
  if (host !== undefined) {
    if (region !== undefined || endpoint !== undefined || urlStyle !== undefined) {
      throw new OperatorMistake('--region, --endpoint and --url-style belong to --bucket.')
    }
    return { kind: 'headers', host, headers: readPairs(secret, ':') }
  }
  if (bucket === undefined || region === undefined) throw new OperatorMistake('--bucket needs --region.')
  const pairs = readPairs(secret, '=')
  const find = (wanted: string) => pairs.filter(({ name }) => name === wanted)
  const [accessKeyId, ...moreIds] = find('aws_access_key_id')
  const [secretAccessKey, ...moreSecrets] = find('aws_secret_access_key')
  if (accessKeyId === undefined || secretAccessKey === undefined || moreIds.length + moreSecrets.length > 0) {
    throw new OperatorMistake(
      'The file must have one line "aws_access_key_id = ..." and one line "aws_secret_access_key = ...".',
    )
  }
  if (find('aws_session_token').length > 0) {
    throw new OperatorMistake('The key has a session token, so it ends soon. Store a permanent key.')
  }
  const keys = { accessKeyId: accessKeyId.value, secretAccessKey: secretAccessKey.value }
  return { kind: 's3', bucket, region, endpoint: endpoint ?? null, style: urlStyle, ...keys }
}

/** Reads lines of a name and a value. Empty lines, comments and sections such as `[default]` are skipped. */
function readPairs(secret: string, separator: ':' | '='): Header[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim())
  return lines.flatMap((line, i) => {
    if (line === '' || line.startsWith('#') || (separator === '=' && line.startsWith('['))) return []
    const at = line.indexOf(separator)
    if (at < 1) throw new OperatorMistake(`Line ${i + 1} of the secret is not a name, "${separator}" and a value.`)
    return [{ name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() }]
  })
}

function readEntered(entered: EnteredCredential) {
  const { config } = loadConfig(process.env)
  const read = readCredential(entered, makeAddressPolicy(config.outboundAllow))
  if ('errors' in read) throw new OperatorMistake(Object.values(read.errors).flat().join(' '))
  return read
}

const toNames = (values: CredentialValues) =>
  showValues(values)
    .map(({ name }) => name)
    .join(', ')

const toCell = (values: ShownCredential['values']) =>
  values === null
    ? 'cannot be used, add it again'
    : values.map(({ name, fingerprint }) => `${name} (${fingerprint})`).join(', ')

const toJson = (credential: ShownCredential) => ({
  id: credential.id,
  kind: credential.region === null ? 'headers' : 's3',
  target: credential.target,
  region: credential.region,
  values: credential.values,
  created_at: credential.createdAt,
  created_by: credential.createdBy,
})
