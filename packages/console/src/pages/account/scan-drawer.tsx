import type { ScanResult } from '@assay/contract'
import { Link } from '@tanstack/react-router'
import { toUrl } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { toExactTime } from '../../ui/format.ts'
import { Loaded } from '../../ui/states.tsx'
import { FalsePositive } from './false-positive.tsx'
import { ResultCard } from './result-card.tsx'

/** One scan with its timeline and deliveries. */
export function ScanDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const scan = useRead('getScan', { params: { id } }, { liveMs: 5000 })
  return (
    <Dialog title="Scan" onClose={onClose} side>
      <Loaded query={scan}>
        {({ scan, timeline, deliveries, key_name }) => (
          <div className="flex flex-col gap-6">
            <ResultCard result={scan}>
              {scan.status === 'threat' && <FalsePositive result={scan} />}
              {hasReceipt(scan) && (
                <p>
                  <a
                    href={toUrl('getReceipt', { params: { id: scan.id } })}
                    download={`receipt-${scan.id}.json`}
                    className={buttonClass('ghost')}
                  >
                    Signed receipt
                  </a>
                </p>
              )}
            </ResultCard>
            <section aria-label="Timeline">
              <h3 className="mb-3 font-semibold">Timeline</h3>
              <ol className="flex flex-col gap-3 border-l-2 border-line pl-4">
                {timeline.map(({ at, event, detail }) => (
                  <li key={`${at} ${event} ${detail}`}>
                    <p className="flex flex-wrap justify-between gap-x-3">
                      <span className="font-medium">{event}</span>
                      <time dateTime={at} className="text-soft">
                        {toExactTime(at)}
                      </time>
                    </p>
                    {detail !== null && detail !== '' && (
                      <p className="font-mono text-xs break-all text-soft">{detail}</p>
                    )}
                  </li>
                ))}
              </ol>
              <p className="mt-3 text-soft">
                {key_name !== null && `Requested with the key ${key_name}. `}
                {scan.status !== 'pending' && 'The content was deleted when the scan completed.'}
              </p>
            </section>
            {deliveries.length > 0 && (
              <section aria-label="Deliveries">
                <h3 className="mb-2 font-semibold">Webhook deliveries</h3>
                <ul>
                  {deliveries.map((delivery) => (
                    <li key={delivery}>
                      <Link
                        to="/webhooks"
                        search={{ delivery }}
                        className="font-mono text-xs break-all text-brand hover:underline"
                      >
                        {delivery}
                      </Link>
                    </li>
                  ))}
                </ul>
              </section>
            )}
          </div>
        )}
      </Loaded>
    </Dialog>
  )
}

/** Nothing is signed for pending scans and for results of test keys. */
const hasReceipt = ({ status, metadata }: ScanResult) => status !== 'pending' && metadata?.test !== 'true'
