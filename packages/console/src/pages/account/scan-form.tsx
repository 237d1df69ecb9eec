import { maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import { type FormEvent, useState } from 'react'
import pornography from '../../../../../docs/test-images/pornography.png'
import sexy from '../../../../../docs/test-images/sexy.png'
import type { ScanRequest } from '../../api/send-scan.ts'
import { Button } from '../../ui/button.tsx'
import { Choice } from '../../ui/choice.tsx'
import { TextField } from '../../ui/field.tsx'
import { toBytes } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { ScanDrop } from './scan-drop.tsx'

/** `onRefused` is called when the form is submitted with a mistake: the result before is of another attempt. */
type Props = { onScan: (scan: ScanRequest) => void; onRefused: () => void; isBusy: boolean }
type Values = {
  does: 'file' | 'url'
  file: File | undefined
  url: string
  kind: ScanKind
  mode: ScanMode
  callbackUrl: string
}
type Errors = { source?: string; callback?: string }

const initial: Values = { does: 'file', file: undefined, url: '', kind: 'malware', mode: 'sync', callbackUrl: '' }

export function ScanForm({ onScan, onRefused, isBusy }: Props) {
  const [values, setValues] = useState(initial)
  const [errors, setErrors] = useState<Errors>({})
  const set = (changes: Partial<Values>) => setValues((before) => ({ ...before, ...changes }))

  const send = (values: Values) => {
    const errors = check(values)
    setValues(values)
    setErrors(errors)
    if (Object.keys(errors).length === 0) onScan(toRequest(values))
    else onRefused()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send(values)
  }
  const scanSample = (kind: ScanKind, file: File) => {
    const callbackUrl = isWebAddress(values.callbackUrl) ? values.callbackUrl : ''
    const sample: Values = { ...values, does: 'file', kind, file, callbackUrl }
    setValues(sample)
    setErrors({})
    onScan(toRequest(sample))
  }

  return (
    <Card title="Content to scan">
      <form onSubmit={submit} className="flex flex-col gap-5" noValidate>
        <Source values={values} set={set} error={errors.source} />
        {isForBackground(values) && (
          <Button onClick={() => send({ ...values, mode: 'async' })} disabled={isBusy}>
            Scan in the background instead
          </Button>
        )}
        <Choice
          label="Scan for"
          value={values.kind}
          onChange={(kind) => set({ kind })}
          options={[
            { value: 'malware', label: 'Malware', about: 'Any file' },
            { value: 'nsfw_image', label: 'NSFW content', about: 'JPEG, PNG, GIF, WebP' },
          ]}
        />
        <Choice
          label="Mode"
          value={values.mode}
          onChange={(mode) => set({ mode })}
          options={[
            { value: 'sync', label: 'Synchronous', about: 'Waits for the verdict' },
            { value: 'async', label: 'In the background', about: 'Larger files, webhooks' },
          ]}
        />
        {values.mode === 'async' && (
          <TextField
            label="Callback URL (optional)"
            type="url"
            placeholder="https://example.com/webhooks/assay"
            hint="Receives the result by POST, signed with your webhook secret."
            value={values.callbackUrl}
            error={errors.callback}
            onText={(callbackUrl) => set({ callbackUrl })}
          />
        )}
        <Button type="submit" variant="primary" isBusy={isBusy}>
          Scan
        </Button>
        <Samples onSample={scanSample} isBusy={isBusy} />
      </form>
    </Card>
  )
}

type SourceProps = { values: Values; set: (changes: Partial<Values>) => void; error: string | undefined }

function Source({ values: { does, file, url, kind, mode }, set, error }: SourceProps) {
  return (
    <>
      <Choice
        label="Content"
        value={does}
        onChange={(does) => set({ does })}
        options={[
          { value: 'file', label: 'A file' },
          { value: 'url', label: 'A URL' },
        ]}
      />
      {does === 'file' ? (
        <ScanDrop
          file={file}
          onFile={(file) => set({ file })}
          error={error}
          hint={`Up to ${toBytes(maxContentBytes[kind][mode])}`}
        />
      ) : (
        <TextField
          label="URL"
          type="url"
          placeholder="https://example.com/download.zip"
          hint="The service downloads the content. The address must be public."
          value={url}
          error={error}
          onText={(url) => set({ url })}
        />
      )}
    </>
  )
}

const addressMessage = 'Enter an address that begins with http:// or https://.'

function check({ does, file, url, kind, mode, callbackUrl }: Values): Errors {
  const source = does === 'url' ? (isWebAddress(url) ? undefined : addressMessage) : checkFile(file, kind, mode)
  const isInvalidCallback = mode === 'async' && callbackUrl.trim() !== '' && !isWebAddress(callbackUrl)
  return { ...(source === undefined ? {} : { source }), ...(isInvalidCallback ? { callback: addressMessage } : {}) }
}

function checkFile(file: File | undefined, kind: ScanKind, mode: ScanMode): string | undefined {
  const limit = maxContentBytes[kind][mode]
  if (file === undefined) return 'Choose a file, or drop one here.'
  if (file.size === 0) return 'The file is empty.'
  if (file.size > limit) return `The file has ${toBytes(file.size)}; this mode accepts up to ${toBytes(limit)}.`
  return undefined
}

/** The file is too large for a synchronous scan, and not for one in the background. */
function isForBackground({ does, file, kind, mode }: Values): boolean {
  const { sync, async } = maxContentBytes[kind]
  return does === 'file' && mode === 'sync' && file !== undefined && file.size > sync && file.size <= async
}

const toRequest = ({ does, file, url, kind, mode, callbackUrl }: Values): ScanRequest => ({
  kind,
  mode,
  source: does === 'url' ? { does, url: url.trim() } : { does, file: file as File },
  callbackUrl: mode === 'async' ? callbackUrl.trim() : undefined,
})

const isWebAddress = (text: string) => /^https?:\/\/\S+$/.test(text.trim()) && URL.canParse(text.trim())

type Sample = { label: string; kind: ScanKind; load: () => Promise<File> }

/** Split in two, so that virus scanners do not report this script. */
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-', 'ANTIVIRUS-TEST-FILE!$H+H*']

/** Harmless files, each with a fixed verdict. */
const samples: Sample[] = [
  { label: 'EICAR test file', kind: 'malware', load: async () => new File(eicar, 'eicar.com') },
  {
    label: 'Clean text file',
    kind: 'malware',
    load: async () => new File(['Nothing to see here.\n'], 'clean.txt', { type: 'text/plain' }),
  },
  { label: 'Test image: pornography', kind: 'nsfw_image', load: () => fetchImage(pornography, 'pornography.png') },
  { label: 'Test image: sexy', kind: 'nsfw_image', load: () => fetchImage(sexy, 'sexy.png') },
]

async function fetchImage(url: string, name: string): Promise<File> {
  const response = await fetch(url)
  return new File([await response.blob()], name, { type: 'image/png' })
}

function Samples({ onSample, isBusy }: { onSample: (kind: ScanKind, file: File) => void; isBusy: boolean }) {
  const [error, setError] = useState<Error>()
  const scan = async ({ kind, load }: Sample) => {
    setError(undefined)
    try {
      onSample(kind, await load())
    } catch {
      setError(new Error('The sample could not be loaded. Check that the service is running.'))
    }
  }
  return (
    <fieldset className="border-t border-line pt-4">
      <legend className="float-left mb-2 w-full text-soft">Or scan a harmless sample:</legend>
      <div className="clear-both flex flex-wrap gap-2">
        {samples.map((sample) => (
          <Button key={sample.label} isSmall onClick={() => scan(sample)} disabled={isBusy}>
            {sample.label}
          </Button>
        ))}
      </div>
      <ErrorMessage error={error} />
    </fieldset>
  )
}
