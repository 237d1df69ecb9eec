import { Page } from '../../ui/page.tsx'
import { ScanForm } from './scan-form.tsx'
import { ScanOutcome } from './scan-outcome.tsx'
import { type Run, useScanRun } from './use-scan-run.ts'

/** A scan by hand: what the interface does, to be seen before a line of code is written. */
export function ScanPage() {
  const { run, start, cancel } = useScanRun()
  return (
    <Page title="Scan" about="Try what your software will do. A scan here costs one credit, like any other.">
      <p role="status" className="sr-only">
        {run === undefined ? '' : toSpoken(run)}
      </p>
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
        <ScanForm onScan={start} isBusy={run?.state === 'sending'} />
        <ScanOutcome run={run} onCancel={cancel} onAgain={start} />
      </div>
    </Page>
  )
}

/** For those who do not see the card change. */
function toSpoken(run: Run): string {
  if (run.state === 'done') return `Verdict: ${run.result.status}`
  return { sending: 'Sending', pending: 'Accepted', failed: 'Not scanned' }[run.state]
}
