import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { archiveForms } from './archive-forms.ts'
import { contentForms } from './content-forms.ts'
import { type Expectation, type Form, type PayloadPair, payloadName, payloads } from './form.ts'
import { frameForms } from './frame-forms.ts'
import { gitForms } from './git-forms.ts'
import { hostForms } from './host-forms.ts'
import { imageForms } from './image-forms.ts'
import { nestedForms } from './nested-forms.ts'
import { oddStreamForms } from './odd-stream-forms.ts'
import { programForms } from './program-forms.ts'
import { streamForms } from './stream-forms.ts'
import { tarForms } from './tar-forms.ts'
import { findTool } from './tools.ts'
import { zipForms } from './zip-forms.ts'
import { zipHeaderForms } from './zip-header-forms.ts'
import { zipReadingForms } from './zip-reading-forms.ts'

/** All forms, in the order in which they are listed. */
export const forms: Form[] = [
  ...zipForms,
  ...zipReadingForms,
  ...zipHeaderForms,
  ...tarForms,
  ...streamForms,
  ...frameForms,
  ...oddStreamForms,
  ...archiveForms,
  ...hostForms,
  ...imageForms,
  ...nestedForms,
  ...contentForms,
  ...programForms,
  ...gitForms,
]

/** A sample with EICAR, and its twin with a harmless text. */
export type Pair = {
  form: Form
  name: string
  expectation: Expectation
  bytes: Buffer
  twin: Buffer
  payload: Buffer
}

/** Returns the programs that a form needs and this machine lacks. */
export const listLacking = (form: Form): string[] => form.needs.filter((program) => findTool(program) === undefined)

/** Makes the samples of a form, or the first `count` of them. Forms take turns with the payloads. */
export function makePairs(form: Form, count?: number): Pair[] {
  const { eicar, harmless } = payloads[forms.indexOf(form) % payloads.length] ?? payloads[0]
  const twins = makeSamples(form, harmless, count)
  return makeSamples(form, eicar, count).map(({ name, bytes, expectation = form.expectation }, n) => {
    const twin = twins[n]
    if (twin?.name !== name) throw new Error(`${form.name}: ${name} has the twin ${twin?.name}`)
    return { form, name, expectation, bytes, twin: twin.bytes, payload: eicar }
  })
}

function makeSamples(form: Form, payload: PayloadPair['eicar'], count: number | undefined) {
  const workdir = mkdtempSync(join(tmpdir(), 'assay-corpus-'))
  try {
    return form.make(payload, payloadName, workdir, count).slice(0, count)
  } catch (error) {
    throw new Error(`${form.name}: ${(error as Error).message}`, { cause: error })
  } finally {
    rmSync(workdir, { recursive: true, force: true })
  }
}
