import { setImmediate } from 'node:timers/promises'
import { makeRequests, type Received } from '../../worker/requests.ts'
import type { Answer, Request } from '../wire.ts'
import { type Backend, compileSound, type RuleSet, type RuleText } from './backend.ts'
import { confine } from './confine.ts'
import { findLibyara } from './libyara.ts'
import { makeYaraX } from './yara-x.ts'

/** Started by yara-process.ts. Takes files of rules, compiles them once and scans what comes until the pipe ends. */
confine()
const requests = makeRequests<Request, Answer>()
const backend = findBackend(process.argv[2])
const files: RuleText[] = []
let set: RuleSet | undefined

for (let received = requests.read(); received !== undefined; received = requests.read()) {
  requests.answer(toAnswer(received))
  // V8 leaves itself work for the event loop, with YARA-X for every scan: without a turn of it that work piles up.
  await setImmediate()
}

function toAnswer({ request, body }: Received<Request>): Answer {
  if (body === undefined) return { abandoned: true }
  if (backend === undefined) return { failure: 'libyara is not installed' }
  switch (request.ask) {
    case 'add':
      files.push({ file: request.file, text: Buffer.from(body) })
      return { added: body.length }
    case 'compile':
      return compile(backend)
    case 'scan': {
      if (set === undefined) return { failure: 'There are no rules yet' }
      if (body.length !== request.bytes) return { bytes: body.length, findings: [], limited: true, worn: false }
      // What it throws ends the process: an engine that failed within is not asked again.
      const { findings, limited } = set.scan(body, request.timeoutMs)
      return { bytes: body.length, findings: [...new Set(findings)], limited, worn: backend.isWorn() }
    }
  }
}

function compile(backend: Backend): Answer {
  try {
    const { set: compiled, refused } = compileSound(backend, files)
    set = compiled
    files.length = 0
    return { version: backend.version, build: backend.build, rules: compiled.rules, refused }
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
}

function findBackend(wanted: string | undefined): Backend | undefined {
  if (wanted === 'yara-x') return makeYaraX()
  const libyara = findLibyara()
  return libyara === undefined && wanted !== 'libyara' ? makeYaraX() : libyara
}
