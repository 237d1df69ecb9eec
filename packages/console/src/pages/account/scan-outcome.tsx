import type { ScanResult } from '@assay/contract'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { markInvisible } from '../../api/marked-json.ts'
import type { ScanRequest } from '../../api/send-scan.ts'
import { Button, Spinner } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, ErrorMessage } from '../../ui/states.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { FalsePositive } from './false-positive.tsx'
import { ResultCard } from './result-card.tsx'
import { toCalls } from './scan-calls.ts'
import type { Run } from './use-scan-run.ts'

type Props = { run: Run | undefined; onCancel: () => void; onRescan: (scan: ScanRequest) => void }

/** The state of the scan, from the upload to the verdict. */
export function ScanOutcome({ run, onCancel, onRescan }: Props) {
  if (run === undefined) {
    return (
      <Empty title="No result yet">
        The verdict appears here with its signals and hashes, and the code for the same scan. The content is deleted
        when the scan completes.
      </Empty>
    )
  }
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Card title="Result">
        {run.state === 'sending' && <Sending share={run.share} onCancel={onCancel} />}
        {run.state === 'failed' && <Failed run={run} onRescan={() => onRescan(run.scan)} />}
        {run.state === 'pending' && <Pending key={run.id} id={run.id} scan={run.scan} onRescan={onRescan} />}
        {run.state === 'done' && <Completed result={run.result} scan={run.scan} onRescan={onRescan} />}
      </Card>
      <Card title="Do the same in code">
        <Tabs
          label="Languages"
          tabs={toCalls(run.scan, location.origin).map(({ name, text }) => ({
            name,
            children: <Code label={name} text={text} />,
          }))}
        />
      </Card>
    </div>
  )
}

function Sending({ share, onCancel }: { share: number; onCancel: () => void }) {
  const percent = Math.round(share * 100)
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-center justify-between gap-3">
        <span className="flex items-center gap-2">
          <Spinner /> {share < 1 ? `Uploading, ${percent} %` : 'Scanning…'}
        </span>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
      <progress
        aria-label="Upload"
        max={100}
        value={percent}
        className="h-2 w-full appearance-none overflow-hidden rounded-full bg-sunk [&::-moz-progress-bar]:bg-brand [&::-webkit-progress-bar]:bg-sunk [&::-webkit-progress-value]:bg-brand"
      />
    </div>
  )
}

function Failed({ run, onRescan }: { run: Run & { state: 'failed' }; onRescan: () => void }) {
  return (
    <div className="flex flex-col items-start gap-3">
      <div className="w-full">
        <ErrorMessage error={run.error} />
      </div>
      <Button onClick={onRescan}>Try again</Button>
    </div>
  )
}

type CompletedProps = { scan: ScanRequest; onRescan: (scan: ScanRequest) => void }

function Pending({ id, ...rest }: CompletedProps & { id: string }) {
  const scan = useRead('getScan', { params: { id } }, { liveMs: (data) => (isCompleted(data?.scan) ? false : 1500) })
  if (scan.error !== null) return <ErrorMessage error={scan.error} />
  if (scan.data === undefined || !isCompleted(scan.data.scan)) {
    return (
      <p role="status" className="flex items-center gap-2">
        <Spinner /> Accepted. The scan runs in the background. You can leave this page and find the result in the{' '}
        <Link to="/history" className="font-medium text-brand hover:underline">
          history
        </Link>
        .
      </p>
    )
  }
  return (
    <>
      <p role="status" className="sr-only">
        Verdict: {scan.data.scan.status}
      </p>
      <Completed result={scan.data.scan} {...rest} />
    </>
  )
}

const isCompleted = (scan: ScanResult | undefined) => scan !== undefined && scan.status !== 'pending'

function Completed({ result, scan, onRescan }: CompletedProps & { result: ScanResult }) {
  const { source } = scan
  return (
    <ResultCard result={result} {...(source.does === 'url' ? { name: source.url } : {})}>
      <div className="flex flex-wrap gap-3 empty:hidden">
        {source.does === 'file' && source.file.type.startsWith('image/') && <ImagePreview file={source.file} />}
        {result.status === 'threat' && <FalsePositive result={result} onRescan={() => onRescan(scan)} />}
      </div>
    </ResultCard>
  )
}

/** Shows the image on request only, because it may be explicit. It is read from the local file. */
function ImagePreview({ file }: { file: File }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url])
  if (url === undefined) {
    return <Button onClick={() => setUrl(URL.createObjectURL(file))}>Show image</Button>
  }
  return (
    <div className="flex w-full flex-col items-start gap-2">
      <img
        src={url}
        alt={`Scanned file ${markInvisible(file.name)}`}
        className="max-h-80 max-w-full rounded-lg border border-line"
      />
      <Button onClick={() => setUrl(undefined)}>Hide image</Button>
    </div>
  )
}
