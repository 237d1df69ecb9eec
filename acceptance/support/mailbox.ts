import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

type Mail = { from: string; to: string[]; raw: string }

/** A mail server that takes every mail and keeps it. */
export async function openMailbox() {
  const mails: Mail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, { envelope }, done) {
      const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
      const to = envelope.rcptTo.map(({ address }) => address)
      text(stream).then((raw) => {
        mails.push({ from, to, raw })
        done()
      }, done)
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    /** Mails whose subject contains this text. */
    about: (subject: string) => mails.filter(({ raw }) => raw.match(/^Subject: (.*)$/m)?.[1]?.includes(subject)),
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}

export type Mailbox = Awaited<ReturnType<typeof openMailbox>>
