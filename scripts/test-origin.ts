import { createServer } from 'node:http'
import { images } from '../acceptance/support/forms.ts'

/** The only loopback address that the shared service may call. */
const host = '127.9.9.9'
export const testNetwork = '127.9.9.0/24'

/** Serves a picture under every path, which suits both kinds of scan. */
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
