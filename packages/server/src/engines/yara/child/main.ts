/**
 * The program of a YARA process, started by load-rules.ts. It takes rule files, compiles them once, and scans content
 * until the service closes the socket.
 */
import { setImmediate } from 'node:timers/promises'
import { openChildPipe, type Received } from '../../child-process/child-pipe.ts'
import type { Answer, Request } from '../requests.ts'
import { type Backend, compileValidFiles, type RuleSet, type RuleText } from './backend.ts'
import { findLibyara } from './libyara.ts'
import { makeYaraX } from './yara-x.ts'

const pipe = openChildPipe<Request, Answer>()
const backend = findBackend(process.argv[2])
const files: RuleText[] = []
let set: RuleSet | undefined

for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  pipe.answer(toAnswer(received))
  // YARA-X leaves V8 work for the event loop with every scan; without a turn of the loop it piles up.
  await setImmediate()
}

function toAnswer({ request, body }: Received<Request>): Answer {
  if (body === undefined) return { abandoned: true }
  if (backend === undefined) return { failure: 'libyara is not installed' }
  switch (request.kind) {
    case 'add':
      files.push({ file: request.file, text: Buffer.from(body) })
      return { added: body.length }
    case 'compile':
      return compile(backend)
    case 'scan': {
      if (set === undefined) return { failure: 'There are no rules yet' }
      if (body.length !== request.bytes)
        return { bytes: body.length, findings: [], limited: true, needsReplacement: false }
      // An exception ends the process: after a failure inside YARA its state is unknown.
      const { findings, limited } = set.scan(body)
      return {
        bytes: body.length,
        findings: [...new Set(findings)],
        limited,
        needsReplacement: backend.needsReplacement(),
      }
    }
  }
}

function compile(backend: Backend): Answer {
  try {
    const { set: compiled, refused } = compileValidFiles(backend, files)
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
