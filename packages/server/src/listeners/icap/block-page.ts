/** Why a message does not get through. The names come from strangers' rules: they stay text, wherever they go. */
export type Block = { because: 'threat' | 'unscanned'; name: string; reference: string }

const words = {
  threat: {
    title: 'Blocked: a threat was found',
    text: 'This content was not let through, because a threat was found in it.',
  },
  unscanned: {
    title: 'Blocked: this could not be scanned',
    text: 'This content was not let through, because it could not be scanned to its end. Nobody knows whether it is safe.',
  },
}

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;color:#222}' +
  'h1{font-size:1.4rem}dt{color:#666}dd{margin:0 0 .8rem;font-family:ui-monospace,monospace;overflow-wrap:anywhere}'

/** An HTTP answer that stands for the message. 403, also for what was not scanned: some clients know only that. */
export function toBlockPage({ because, name, reference }: Block): { head: Buffer; body: Buffer } {
  const { title, text } = words[because]
  const body = Buffer.from(
    [
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
      `<title>${title}</title><style>${style}</style></head><body><h1>${title}</h1><p>${text}</p>`,
      `<dl><dt>${because === 'threat' ? 'Found' : 'Reason'}</dt><dd>${escapeHtml(name)}</dd>`,
      `<dt>Reference</dt><dd>${escapeHtml(reference)}</dd></dl></body></html>\n`,
    ].join(''),
  )
  const lines = [
    'HTTP/1.1 403 Forbidden',
    'Content-Type: text/html; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
    'X-Content-Type-Options: nosniff',
  ]
  return { head: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body }
}

/** As c-icap and others write them, for clients that look for nothing else. */
export const toBlockHeaders = ({ because, name }: Block) =>
  because === 'threat'
    ? { 'X-Infection-Found': `Type=0; Resolution=2; Threat=${toToken(name)};`, 'X-Virus-ID': toToken(name) }
    : {}

const toToken = (name: string) => name.replaceAll(/[^\x21-\x7e]|[;,"]/g, '_')

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (letter) => entities[letter] ?? '')
