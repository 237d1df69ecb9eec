import type { MailSender } from '../domain/ports/alert-store.ts'
import type { Logger } from '../runtime/logger.ts'

const timeoutMs = 10_000
const local = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Makes the client of the operator's mail server. A password is sent to a server on this machine, or over TLS only.
 */
export function makeMailSender({ url, from, log }: { url: URL; from: string; log: Logger }): MailSender {
  const options = {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (url.protocol === 'smtps:' ? 465 : 587) : Number(url.port),
    secure: url.protocol === 'smtps:',
    requireTLS: url.username !== '' && !local.has(url.hostname),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(url.username === ''
      ? {}
      : { auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) } }),
  }
  return {
    async send(mail) {
      // Imported with the first mail, because most installations send none.
      const { createTransport } = await import('nodemailer')
      const transport = createTransport(options)
      try {
        await transport.sendMail({ from, ...mail })
        return undefined
      } catch (error) {
        // The message has the address and the words of the operator's mail server, which owners do not get to see.
        const { message, code, responseCode } = error as Error & { code?: string; responseCode?: number }
        log.warn({ reason: message.slice(0, 500), code, responseCode }, 'the mail server did not take a mail')
        const codes = [code, responseCode].filter((one) => one !== undefined)
        return `The mail server did not take the mail${codes.length > 0 ? ` (${codes.join(', ')})` : ''}.`
      } finally {
        transport.close()
      }
    },
  }
}
