import type { ScanResult } from '@assay/contract'
import { Link } from '@tanstack/react-router'
import { useRead } from '../../api/hooks.ts'
import type { ScanOrder } from '../../api/send-scan.ts'
import { Button, Spinner } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Empty, Failure } from '../../ui/feedback.tsx'
import { Card } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { FalsePositive } from './false-positive.tsx'
import { ImagePreview } from './image-preview.tsx'
import { ResultCard } from './result-card.tsx'
import { toCalls } from './scan-calls.ts'
import type { Run } from './use-scan-run.ts'

type Props = { run: Run | undefined; onCancel: () => void; onAgain: (order: ScanOrder) => void }

/** What became of the scan, from the first byte sent to the verdict. */
export function ScanOutcome({ run, onCancel, onAgain }: Props) {
  if (run === undefined) {
    return (
      <Empty title="The verdict comes here">
        With its signals and hashes, and the same call for your own code. The content is deleted as soon as it is
        scanned.
      </Empty>
    )
  }
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Card title="Result">
        {run.state === 'sending' && <Sending share={run.share} onCancel={onCancel} />}
        {run.state === 'failed' && <Failed run={run} onAgain={() => onAgain(run.order)} />}
        {run.state === 'pending' && <Pending key={run.id} id={run.id} order={run.order} onAgain={onAgain} />}
        {run.state === 'done' && <Done result={run.result} order={run.order} onAgain={onAgain} />}
      </Card>
      <Card title="The same in your code">
        <Tabs
          label="Ways to call"
          tabs={toCalls(run.order, location.origin).map(({ name, text }) => ({
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
          <Spinner /> {share < 1 ? `Sending, ${percent} %` : 'Sent. Scanning…'}
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

function Failed({ run, onAgain }: { run: Run & { state: 'failed' }; onAgain: () => void }) {
  return (
    <div className="flex flex-col items-start gap-3">
      <div className="w-full">
        <Failure error={run.error} />
      </div>
      <Button onClick={onAgain}>Try again</Button>
    </div>
  )
}

type Settled = { order: ScanOrder; onAgain: (order: ScanOrder) => void }

function Pending({ id, ...rest }: Settled & { id: string }) {
  const scan = useRead('getScan', { params: { id } }, { liveMs: (data) => (isSettled(data?.scan) ? false : 1500) })
  if (scan.error !== null) return <Failure error={scan.error} />
  if (scan.data === undefined || !isSettled(scan.data.scan)) {
    return (
      <p role="status" className="flex items-center gap-2">
        <Spinner /> Accepted. It is scanned in the background; you may leave this page and find it in the{' '}
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
      <Done result={scan.data.scan} {...rest} />
    </>
  )
}

const isSettled = (scan: ScanResult | undefined) => scan !== undefined && scan.status !== 'pending'

function Done({ result, order, onAgain }: Settled & { result: ScanResult }) {
  const { source } = order
  return (
    <ResultCard result={result} {...(source.does === 'url' ? { name: source.url } : {})}>
      <div className="flex flex-wrap gap-3 empty:hidden">
        {source.does === 'file' && source.file.type.startsWith('image/') && <ImagePreview file={source.file} />}
        {result.status === 'threat' && <FalsePositive result={result} onAgain={() => onAgain(order)} />}
      </div>
    </ResultCard>
  )
}
