import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { OperatorMistake } from '../domain/problem.ts'
import { type Receipt, toPublicKey, verifyReceipt } from '../domain/receipts.ts'
import { addCommand, changeStores, newCommand, print, toCard, toTable, withStores } from './terminal.ts'

type VerifyOptions = { keys?: string; content?: string; clean?: true }

export function makeReceiptsCommand(): Command {
  const receipts = newCommand('receipts', 'verify signed receipts; list, rotate and withdraw their keys')

  addCommand(receipts, 'verify', 'check the signature of a receipt; exit code 1 if it is not valid')
    .argument('<file>', 'file with the receipt, or with the result that contains it')
    .option('--keys <file or URL>', 'public keys, as /.well-known/assay-receipts.json serves them; else the database')
    .option('--content <file>', 'content that the receipt must be about')
    .option('--clean', 'require the status clean, and no later revision to another status')
    .action(async (file: string, { keys, content, clean }: VerifyOptions, command: Command) => {
      const { text, result } = findReceipt(readText(file))
      const verified = verifyReceipt(text, await readKeys(keys))
      if ('fault' in verified) throw new OperatorMistake(verified.fault)
      const { receipt, kid } = verified
      if (result !== undefined) requireSame(receipt, result)
      if (content !== undefined) await requireContent(receipt, content)
      if (clean) requireClean(receipt)
      const json = { valid: true, kid, ...(content !== undefined && { content_matches: true }), ...receipt }
      print(command, json, toText(receipt, kid, content))
    })

  addCommand(
    receipts,
    'keys',
    'list the keys that receipts were signed with; with --json, as a JSON Web Key Set',
  ).action(async (_options: unknown, command: Command) => {
    const keys = await withStores(({ receiptKeys }) => receiptKeys.listKeys())
    const rows = keys.map(({ id, createdAt, isCurrent }) => [
      id,
      createdAt.toISOString(),
      isCurrent ? 'signs' : 'verifies',
    ])
    print(
      command,
      { keys: keys.map(({ publicKey }) => toPublicKey(publicKey)) },
      toTable(['key', 'created', 'use'], rows),
    )
  })

  addCommand(receipts, 'rotate-key', 'sign further receipts with a new key; former receipts stay valid').action(
    async (_options: unknown, command: Command) => {
      const id = await changeStores(async ({ receiptKeys }, audit) => {
        const created = await receiptKeys.rotateKey()
        await audit('receipt-key.rotate', created)
        return created
      })
      print(
        command,
        { kid: id },
        `Receipts are signed with the key ${id} from now on. Give auditors the new list of keys.`,
      )
    },
  )

  addCommand(receipts, 'withdraw-key', 'remove a leaked key from the list: its receipts are not valid any more')
    .argument('<key>', 'key, as `receipts keys` prints it')
    .action(async (id: string, _options: unknown, command: Command) => {
      const isWithdrawn = await changeStores(async ({ receiptKeys }, audit) => {
        const isFound = await receiptKeys.withdrawKey(id)
        if (isFound) await audit('receipt-key.withdraw', id)
        return isFound
      })
      if (!isWithdrawn) throw new OperatorMistake(`There is no key ${id}.`)
      print(command, { kid: id, withdrawn: true }, `The key ${id} is withdrawn. Give auditors the new list of keys.`)
    })
  return receipts
}

/** Receipts and lists of keys are a few kilobytes long. */
const maxBytes = 1024 * 1024
const fetchMs = 10_000

function readText(file: string): string {
  try {
    if (statSync(file).size <= maxBytes) return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new OperatorMistake(`${file} cannot be read: ${(error as Error).message}.`, { cause: error })
  }
  throw new OperatorMistake(`${file} is too long for a receipt or a list of keys.`)
}

/** The receipt in a text that is one, or in the JSON of a result, with that result. */
function findReceipt(text: string): { text: string; result?: object } {
  if (!text.startsWith('{')) return { text }
  const result = parse(text, 'The file') as { metadata?: Record<string, unknown> | null }
  const { receipt, ...metadata } = result.metadata ?? {}
  if (typeof receipt === 'string') return { text: receipt, result: { ...result, metadata } }
  throw new OperatorMistake('The result in the file has no receipt. Ask for the result with ?receipt=1.')
}

/** A valid receipt says nothing about another result that was put around it. */
function requireSame({ result: signed }: Receipt, result: object) {
  if (isDeepStrictEqual(signed, result)) return
  throw new OperatorMistake('The result in the file is not the one that was signed. Trust the receipt inside it alone.')
}

function requireClean({ result: { status, metadata } }: Receipt) {
  const revised = metadata?.revised_status ?? 'clean'
  if (status === 'clean' && revised === 'clean') return
  throw new OperatorMistake(
    `The receipt is valid, but the content is not clean: the result is ${status}${revised === 'clean' ? '' : `, revised to ${revised}`}.`,
  )
}

async function readKeys(source: string | undefined): Promise<unknown> {
  if (source === undefined) {
    const keys = await withStores(({ receiptKeys }) => receiptKeys.listKeys())
    return { keys: keys.map(({ publicKey }) => toPublicKey(publicKey)) }
  }
  const isUrl = /^https?:\/\//i.test(source)
  return parse(isUrl ? await fetchText(source) : readText(source), 'The list of keys')
}

async function fetchText(url: string): Promise<string> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(fetchMs) })
    if (!response.ok) throw new Error(`the server answered with status ${response.status}`)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length
      if (bytes > maxBytes) throw new Error('the answer is too long for a list of keys')
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } catch (error) {
    const { message, cause } = error as Error
    const reason = cause instanceof Error ? cause.message : message
    throw new OperatorMistake(`The keys at ${url} cannot be read: ${reason}.`, { cause: error })
  }
}

function parse(text: string, what: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Reported below, like JSON of another kind.
  }
  throw new OperatorMistake(`${what} is not a JSON object.`)
}

async function requireContent({ result }: Receipt, file: string) {
  const hashes = { hash_sha1: createHash('sha1'), hash_sha256: createHash('sha256') }
  try {
    await pipeline(createReadStream(file), async (chunks) => {
      for await (const chunk of chunks) for (const hash of Object.values(hashes)) hash.update(chunk)
    })
  } catch (error) {
    throw new OperatorMistake(`${file} cannot be read: ${(error as Error).message}.`, { cause: error })
  }
  for (const [name, hash] of Object.entries(hashes)) {
    const digest = hash.digest('hex')
    if (result.metadata?.[name] === digest) continue
    throw new OperatorMistake(
      `The receipt is valid, but not about this content: its ${name} is ${result.metadata?.[name] ?? 'missing'}, and ${file} has ${digest}.`,
    )
  }
}

function toText({ iss, iat, installation_id, result }: Receipt, kid: string, content: string | undefined): string {
  const { metadata } = result
  const card = toCard({
    scan: result.id,
    kind: result.scan_type,
    status: result.status,
    ...(metadata?.revised_status !== undefined && {
      revised: `${metadata.revised_status} (${metadata.revised_at})`,
    }),
    signals: result.signals?.join(', ') || null,
    sha256: metadata?.hash_sha256 ?? null,
    engines: metadata?.engine_versions ?? null,
    submitted: result.created_at,
    scanned: result.completed_at ?? null,
    signed: new Date(iat * 1000).toISOString(),
    issuer: iss,
    installation: installation_id,
    key: kid,
  })
  return `The receipt is valid${content === undefined ? '' : `, and about ${content}`}.\n\n${card}`
}
