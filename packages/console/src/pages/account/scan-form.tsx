import { maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import { type FormEvent, useState } from 'react'
import type { ScanOrder } from '../../api/send-scan.ts'
import { Button } from '../../ui/button.tsx'
import { Choice } from '../../ui/choice.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { toBytes } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { ScanDrop } from './scan-drop.tsx'
import { type Sample, samples } from './scan-samples.ts'

type Props = { onScan: (order: ScanOrder) => void; isBusy: boolean }
type Wrong = { source?: string; callback?: string }

export function ScanForm({ onScan, isBusy }: Props) {
  const [does, setDoes] = useState<'file' | 'url'>('file')
  const [file, setFile] = useState<File>()
  const [url, setUrl] = useState('')
  const [kind, setKind] = useState<ScanKind>('malware')
  const [mode, setMode] = useState<ScanMode>('sync')
  const [callbackUrl, setCallbackUrl] = useState('')
  const [wrong, setWrong] = useState<Wrong>({})
  const [failure, setFailure] = useState<Error>()
  const limit = maxContentBytes[kind][mode]

  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = check()
    setWrong(found)
    if (found.source !== undefined || found.callback !== undefined) return
    const source = does === 'url' ? { does, url: url.trim() } : { does, file: file as File }
    onScan({ kind, mode, source, callbackUrl: mode === 'async' ? callbackUrl.trim() : undefined })
  }

  const takeSample = async (sample: Sample) => {
    setFailure(undefined)
    try {
      const file = await sample.load()
      setDoes('file')
      setFile(file)
      setKind(sample.kind)
      setWrong({})
      onScan({ kind: sample.kind, mode, source: { does: 'file', file }, callbackUrl: toCallback(mode, callbackUrl) })
    } catch {
      setFailure(new Error('The sample could not be loaded. Is the service running?'))
    }
  }

  return (
    <Card title="What to scan">
      <form onSubmit={submit} className="flex flex-col gap-5" noValidate>
        <Choice
          label="Content"
          value={does}
          onChoose={setDoes}
          options={[
            { value: 'file', label: 'A file' },
            { value: 'url', label: 'A URL' },
          ]}
        />
        {does === 'file' ? (
          <ScanDrop file={file} onFile={setFile} error={wrong.source} hint={`Up to ${toBytes(limit)}`} />
        ) : (
          <TextField
            label="URL"
            type="url"
            placeholder="https://example.com/download.zip"
            hint="The service fetches it; only public addresses."
            value={url}
            error={wrong.source}
            onText={setUrl}
          />
        )}
        <Choice
          label="Look for"
          value={kind}
          onChoose={setKind}
          options={[
            { value: 'malware', label: 'Malware', about: 'Any file' },
            { value: 'nsfw_image', label: 'NSFW content', about: 'JPEG, PNG, GIF, WebP' },
          ]}
        />
        <Choice
          label="How"
          value={mode}
          onChoose={setMode}
          options={[
            { value: 'sync', label: 'While you wait', about: 'The verdict at once' },
            { value: 'async', label: 'In the background', about: 'Larger files, webhooks' },
          ]}
        />
        {mode === 'async' && (
          <TextField
            label="Callback URL (optional)"
            type="url"
            placeholder="https://example.com/webhooks/assay"
            hint="Gets the result by POST, signed with your webhook secret."
            value={callbackUrl}
            error={wrong.callback}
            onText={setCallbackUrl}
          />
        )}
        <Button type="submit" look="main" isBusy={isBusy}>
          Scan
        </Button>
        <Samples onSample={takeSample} isBusy={isBusy} />
        <Failure error={failure} />
      </form>
    </Card>
  )

  function check(): Wrong {
    return {
      ...(does === 'file' && file === undefined ? { source: 'Choose a file first, or drop one here.' } : {}),
      ...(does === 'file' && file !== undefined && file.size === 0 ? { source: 'This file is empty.' } : {}),
      ...(does === 'file' && file !== undefined && file.size > limit
        ? { source: `This file has ${toBytes(file.size)}; up to ${toBytes(limit)} can be scanned this way.` }
        : {}),
      ...(does === 'url' && !isWebAddress(url)
        ? { source: 'Give an address that begins with http:// or https://.' }
        : {}),
      ...(mode === 'async' && callbackUrl.trim() !== '' && !isWebAddress(callbackUrl)
        ? { callback: 'Give an address that begins with http:// or https://.' }
        : {}),
    }
  }
}

function Samples({ onSample, isBusy }: { onSample: (sample: Sample) => void; isBusy: boolean }) {
  return (
    <fieldset className="border-t border-line pt-4">
      <legend className="float-left mb-2 w-full text-soft">Or try one of these, all harmless, with one click:</legend>
      <div className="clear-both flex flex-wrap gap-2">
        {samples.map((sample) => (
          <Button key={sample.label} onClick={() => onSample(sample)} disabled={isBusy} className="px-2.5 py-1 text-xs">
            {sample.label}
          </Button>
        ))}
      </div>
    </fieldset>
  )
}

const toCallback = (mode: ScanMode, url: string) => (mode === 'async' && isWebAddress(url) ? url.trim() : undefined)

const isWebAddress = (text: string) => /^https?:\/\/\S+$/.test(text.trim()) && URL.canParse(text.trim())
