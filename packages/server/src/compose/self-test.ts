import type { Content } from '../domain/content/content.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { ScanOptions } from '../domain/scans/verdict.ts'

/** As the engines of this node see it, or those of others. */
export type Look = (content: Content, asked: ScanOptions) => Promise<{ status: string; signals: string[] | null }>

/** Not in one piece, so that this file is not taken for what it looks for. */
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD', '-ANTIVIRUS-TEST-FILE!$H+H*'].join('')

/** A grey square. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAMAAACdt4HsAAAAA1BMVEWIiIhYZW6zAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAG0lEQVRYw+3BgQAAAADDoPlT3+AEVQEAAAB8AxBAAAEZszF2AAAAAElFTkSuQmCC',
  'base64',
)

/** Whether the engines still find what they must, and nothing where there is nothing. */
export function makeSelfTest({ assess, contents }: { assess: Look; contents: ContentStore }) {
  return async () => [
    await check('EICAR is found', Buffer.from(eicar), 'malware', 'threat'),
    await check('harmless text is clean', Buffer.from('A harmless line of text.\n'), 'malware', 'clean'),
    await check('a grey picture is clean', picture, 'nsfw_image', 'clean'),
  ]

  async function check(name: string, bytes: Buffer, kind: 'malware' | 'nsfw_image', expected: string) {
    const writer = contents.newWriter()
    try {
      await writer.write(Buffer.from(bytes))
      const content = await writer.finish()
      const { status, signals } = await assess(content, { kind, contentName: null, flagsSexy: true, isTest: false })
      const said = [status, ...(signals ?? [])].join(' ')
      return { name, ok: status === expected, detail: said }
    } catch (error) {
      return { name, ok: false, detail: (error as Error).message }
    } finally {
      await writer.abort()
    }
  }
}
