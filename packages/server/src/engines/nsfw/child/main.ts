/**
 * The program of an image process, started by image-engine.ts. It opens its models once and classifies pictures until
 * the service closes the socket.
 */
import { setImmediate } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { openChildPipe, type Received } from '../../child-process/child-pipe.ts'
import { collectGarbage } from '../../child-process/late-flags.ts'
import type { Answer, Opening, Request } from '../requests.ts'
import { type Classifier, openClassifier } from './classifier.ts'

const pipe = openChildPipe<Request, Answer>()
let classifier: Classifier | undefined
/** Bytes outside of the heap from which on garbage is collected between two pictures; 9 MB are there in any case. */
const maxExternalBytes = 24 * 1024 * 1024

for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  pipe.answer(await toAnswer(received))
  // The libraries leave work for the event loop, such as freeing memory. It runs before the next blocking read.
  await setImmediate()
  freePixels()
}

/**
 * Frees the pixels of a large picture before the next one arrives: V8 would keep up to 50 MB of them while the next one
 * is decoded. Collecting takes 16 ms, so that the pixels of small pictures are left until there are many.
 */
function freePixels() {
  if (getHeapStatistics().external_memory > maxExternalBytes) collectGarbage()
}

/** An exception ends the process: after a failure inside a library its state is unknown. */
async function toAnswer({ request, body }: Received<Request>): Promise<Answer> {
  if (request.kind === 'open') return open(request)
  if (body === undefined) return { abandoned: true }
  if (classifier === undefined) return { failure: 'No model is open yet' }
  if (body.length !== request.bytes) return { failure: `Only ${body.length} of ${request.bytes} bytes arrived` }
  return { report: await classifier.classify(body) }
}

async function open(opening: Opening): Promise<Answer> {
  try {
    classifier = await openClassifier(opening)
    return { opened: { versions: classifier.versions } }
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
}
