import { createServer } from 'node:http'
import { images } from '../acceptance/support/forms.ts'

/** A loopback address that nothing else uses: the service of the run may call it, and stays forbidden to call the others. */
const host = '127.9.9.9'
export const testNetwork = '127.9.9.0/24'

/** Where URLs of the tests lead: a picture, which is good for both kinds of scan. */
export async function openTestOrigin() {
  const server = createServer((_request, response) => response.end(images['one.png']))
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://${host}:${port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
