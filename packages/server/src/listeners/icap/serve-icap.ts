import type { Line } from '../connection.ts'
import { goOnWords, toIcapHead } from './answers.ts'
import { type Exchange, type ExchangeDeps, newExchange } from './exchange.ts'
import { IcapFault } from './fault.ts'
import { type IcapEvent, newIcapParser } from './icap-parser.ts'

/** The one service there is. */
const serviceName = 'avscan'
const idleMs = 120_000
const headMs = 30_000

/** One client, usually a proxy: requests one after the other, until somebody hangs up. */
export async function serveIcap(line: Line, deps: ExchangeDeps) {
  const parser = newIcapParser()
  let exchange: Exchange | undefined
  let isIdle = true
  try {
    line.expectWithin(idleMs)
    for await (const chunk of line.chunks()) {
      if (isIdle) line.expectWithin(headMs)
      isIdle = false
      for (const event of parser.push(chunk)) if (!(await take(event))) return
    }
  } catch (error) {
    if (!(error instanceof IcapFault)) throw error
    await line.send(toRefusal(error))
  } finally {
    await exchange?.abandon()
  }

  /** Whether the client may say more. */
  async function take(event: IcapEvent): Promise<boolean> {
    switch (event.kind) {
      case 'request': {
        if (event.request.service !== serviceName) {
          throw new IcapFault(404, `The only service here is icap://<host>:<port>/${serviceName}.`)
        }
        line.setBusy(true)
        exchange = newExchange(line, event, deps)
        await exchange.begin()
        return true
      }
      case 'content':
        return (await exchange?.receive(event.bytes)) ?? false
      case 'preview-end': {
        if (exchange?.isDecided() === true) return finish(true)
        await line.send(goOnWords)
        parser.continueAfterPreview()
        return true
      }
      case 'end':
        return finish(event.inPreview)
    }
  }

  async function finish(inPreview: boolean): Promise<boolean> {
    const goesOn = (await exchange?.finish(inPreview)) ?? false
    exchange = undefined
    line.setBusy(false)
    isIdle = true
    line.expectWithin(idleMs)
    return goesOn && !line.isStopping()
  }

  function toRefusal({ status, message }: IcapFault): string {
    const allow = status === 405 ? 'OPTIONS, REQMOD, RESPMOD' : undefined
    const detail = { Encapsulated: 'null-body=0', 'X-Assay-Detail': message }
    return toIcapHead(status, { ISTag: deps.findTag(), Connection: 'close', Allow: allow, ...detail })
  }
}
