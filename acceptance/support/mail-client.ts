import { openTalk } from './listeners.ts'
import { waitUntil } from './wait-until.ts'

/** A mail with one attachment, whose lines are as short as mail servers demand. */
export function toMail(content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,76}/g) ?? []
  return [
    'From: a@mail.test',
    'To: b@mail.test',
    'Subject: an attachment',
    'Date: Wed, 18 Nov 2026 09:00:00 +0000',
    'Message-ID: <1@mail.test>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=edge',
    '',
    '--edge',
    'Content-Type: text/plain',
    '',
    'hello',
    '--edge',
    'Content-Type: application/octet-stream; name=attachment.bin',
    'Content-Disposition: attachment; filename=attachment.bin',
    'Content-Transfer-Encoding: base64',
    '',
    ...lines,
    '--edge--',
    '',
  ].join('\r\n')
}

/** Sends a mail over SMTP and returns the last reply, or that to the first command that the server refused. */
export async function sendMail(port: number, mail: string): Promise<string> {
  const { socket, heard } = openTalk(port)
  const commands = ['EHLO client.test', 'MAIL FROM:<a@mail.test>', 'RCPT TO:<b@mail.test>', 'DATA', `${mail}.`]
  let at = 0
  try {
    for (const command of [undefined, ...commands]) {
      if (command !== undefined) socket.write(`${command}\r\n`)
      const isWhole = () => /^\d{3} [^\n]*\n/m.test(heard().slice(at))
      await waitUntil('a reply over SMTP', () => isWhole() || socket.destroyed || socket.readableEnded)
      const reply = heard().slice(at)
      at = heard().length
      if (!/^[23]/.test(reply) || command === commands.at(-1)) return reply.trim()
    }
    return ''
  } finally {
    socket.destroy()
  }
}
