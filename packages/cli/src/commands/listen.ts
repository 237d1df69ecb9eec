import { Aborted, AssayError, type Client, type ScanResult, type SignedDelivery } from '@assay/client'
import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { exitCodes } from '../exit-codes.ts'
import { newStop, openInterrupts } from '../interrupts.ts'
import { makePaint, type Paint, toVerdict } from '../report/lines.ts'
import { openOutput } from '../report/output.ts'
import { sanitize, sanitizeJson } from '../report/sanitize.ts'
import { makeBackoff, type Notice, permanentErrors } from '../scanning/backoff.ts'
import { toUserMessage } from '../scanning/outcome.ts'
import { toMessage, UserError } from '../user-errors.ts'
import { wait } from '../wait.ts'

/** How long the service may hold a request until there is a webhook. */
const waitSeconds = 20
/** The service waits as long for the answer of a receiver. */
const forwardMs = 15_000

/** The answer of the program that a webhook was forwarded to, or the reason why there is none. */
type Forwarded = { status: number; milliseconds: number } | { error: string }

/** Shows the webhooks of the account as they are sent, and forwards them, until a signal ends it, which is no error. */
export async function listen(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const forwardTo = readForwardTo(parsed)
  const config = getConfig(env)
  const client = openClient(config)
  const interrupts = openInterrupts()
  const stop = newStop(interrupts.signal)
  const { signal } = stop
  const output = openOutput(stop.stopFor)
  const notice: Notice = (message) => void process.stderr.write(`assay-scan: ${sanitize(message)}\n`)
  const toLine = parsed.has('json') ? toJson : makeToLine(makePaint(process.stdout.isTTY, env))

  const onListening = () => notice(`Listening for webhooks of ${config.url}. Press Ctrl-C to stop.`)
  for await (const delivery of iterateDeliveries(client, { signal, notice, onListening, stopFor: stop.stopFor })) {
    const forwarded = forwardTo === undefined ? undefined : await forward(delivery, forwardTo, signal)
    output.write(`${toLine(delivery, forwarded)}\n`)
  }
  const reason = stop.reason()
  if (reason !== undefined) notice(reason)
  await output.flush()
  interrupts.close()
  return reason === undefined ? exitCodes.clean : exitCodes.error
}

function readForwardTo(parsed: Parsed): URL | undefined {
  if (parsed.args.length > 0) throw new UserError('listen takes no arguments. See assay-scan listen --help.')
  const text = parsed.findText('forward-to')
  if (text === undefined) return undefined
  const url = findUrl(text)
  if (url !== undefined && ['http:', 'https:'].includes(url.protocol)) return url
  throw new UserError(`--forward-to must be a URL such as http://localhost:3000/hook, not ${text}.`)
}

/** Node 18 has neither URL.parse nor, in its first versions, URL.canParse. */
function findUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

type IterateOptions = {
  signal: AbortSignal
  notice: Notice
  onListening(): void
  stopFor(reason: string): void
}

/** Deliveries in the order in which they were made, beginning now. After an outage of the service it goes on there. */
async function* iterateDeliveries(
  client: Client,
  { signal, notice, onListening, stopFor }: IterateOptions,
): AsyncGenerator<SignedDelivery> {
  const backoff = makeBackoff(notice)
  let since: string | undefined
  while (!signal.aborted) {
    try {
      const options = since === undefined ? {} : { since, waitSeconds }
      const { until, deliveries } = await client.listDeliveries({ ...options, signal })
      backoff.succeed()
      if (since === undefined) onListening()
      since = until
      yield* deliveries
    } catch (error) {
      if (error instanceof Aborted) return
      if (!(error instanceof AssayError)) throw error
      if ([...permanentErrors, 'ValidationFailed'].includes(error.name)) return stopFor(toUserMessage(error))
      backoff.fail(toUserMessage(error))
      await wait(backoff.pausedUntil() - Date.now(), signal)
    }
  }
}

/** Sends the webhook as the service does: the same bytes and signatures, and redirects are not followed. */
async function forward({ body, headers }: SignedDelivery, url: URL, interrupted: AbortSignal): Promise<Forwarded> {
  const startedAt = performance.now()
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(forwardMs)])
  try {
    const allHeaders = { ...headers, 'Content-Type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers: allHeaders, body, redirect: 'manual', signal })
    await answer.body?.cancel()
    return { status: answer.status, milliseconds: Math.round(performance.now() - startedAt) }
  } catch (error) {
    if (interrupted.aborted) return { error: 'interrupted' }
    if (signal.aborted) return { error: `no answer within ${forwardMs / 1000} s` }
    const { cause } = error as { cause?: unknown }
    return { error: toMessage(cause ?? error) }
  }
}

const toJson = ({ id, callback_url, body }: SignedDelivery, forwarded: Forwarded | undefined) =>
  sanitizeJson({ webhook_id: id, callback_url, result: JSON.parse(body), ...(forwarded && { forwarded }) })

function makeToLine(paint: Paint) {
  return ({ created_at, callback_url, body }: SignedDelivery, forwarded: Forwarded | undefined): string => {
    const result = JSON.parse(body) as ScanResult
    const name = sanitize(result.content_name ?? result.id)
    const line = `${created_at.slice(11, 19)} ${name}: ${toVerdict(result, paint)}`
    if (forwarded === undefined) return `${line} (for ${sanitize(callback_url)})`
    if ('error' in forwarded) return `${line}, ${paint('yellow', `not forwarded: ${sanitize(forwarded.error)}`)}`
    const isTaken = forwarded.status >= 200 && forwarded.status < 300
    return `${line}, ${paint(isTaken ? 'green' : 'yellow', String(forwarded.status))} in ${forwarded.milliseconds} ms`
  }
}
