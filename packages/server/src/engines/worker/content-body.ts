import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'

/** The content as a process is given it. */
export const toBody = (content: Content): Buffer | AsyncIterable<Buffer> =>
  content.whole?.length === content.bytes ? content.whole : checkLength(content)

/** More bytes than announced would end the process. */
async function* checkLength(content: Content): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of content.read()) {
    bytes += chunk.length
    if (bytes > content.bytes) throw new EngineDown(`The content has more than its ${content.bytes} bytes`)
    yield chunk
  }
}
