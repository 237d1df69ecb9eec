import { Page } from '../../ui/page.tsx'
import { ScanForm } from './scan-form.tsx'
import { ScanOutcome } from './scan-outcome.tsx'
import { type Run, useScanRun } from './use-scan-run.ts'

export function ScanPage() {
  const { run, start, cancel } = useScanRun()
  return (
    <Page title="Scan" about="Scan a file or URL in the browser. A scan costs one credit, like a scan through the API.">
      <p role="status" className="sr-only">
        {run === undefined ? '' : toAnnouncement(run)}
      </p>
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
        <ScanForm onScan={start} onRefused={cancel} isBusy={run?.state === 'sending'} />
        <ScanOutcome run={run} onCancel={cancel} onRescan={start} />
      </div>
    </Page>
  )
}

/** Announces the state of the scan to screen readers. */
function toAnnouncement(run: Run): string {
  if (run.state === 'done') return `Verdict: ${run.result.status}`
  return { sending: 'Sending', pending: 'Accepted', failed: 'Failed' }[run.state]
}
