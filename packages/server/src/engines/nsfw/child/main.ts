import { setImmediate } from 'node:timers/promises'
import { makeRequests, type Received } from '../../worker/requests.ts'
import type { Answer, Opening, Request } from '../wire.ts'
import { type Classifier, openClassifier } from './classifier.ts'

/** Started by image-process.ts. Opens its models once and looks at what comes until the pipe ends. */
const requests = makeRequests<Request, Answer>()
let classifier: Classifier | undefined

for (let received = requests.read(); received !== undefined; received = requests.read()) {
  requests.answer(await toAnswer(received))
  // What the libraries leave to the event loop, such as giving memory back, is done before waiting for the next.
  await setImmediate()
}

/** What this throws ends the process: one that failed within is not asked again. */
async function toAnswer({ request, body }: Received<Request>): Promise<Answer> {
  if (request.ask === 'open') return open(request)
  if (body === undefined) return { abandoned: true }
  if (classifier === undefined) return { failure: 'No model is open yet' }
  if (body.length !== request.bytes) return { failure: `${body.length} bytes came of ${request.bytes}` }
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
