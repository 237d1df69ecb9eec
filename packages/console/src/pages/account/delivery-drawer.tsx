import type { DeliveryDetail } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { toAge, toExactTime } from '../../ui/format.ts'
import { Facts } from '../../ui/page.tsx'
import { ErrorMessage, Loaded } from '../../ui/states.tsx'
import { DeliveryState } from './delivery-table.tsx'

/** One delivery with its request, its attempts and the time of the next attempt. */
export function DeliveryDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const delivery = useRead('getDelivery', { params: { id } }, { liveMs: 2000 })
  const replay = useChange('replayDelivery')
  return (
    <Dialog title="Delivery" onClose={onClose} side>
      <Loaded query={delivery}>
        {(detail) => (
          <div className="flex flex-col gap-6">
            <div className="flex flex-wrap items-center justify-between gap-3">
              <DeliveryState state={detail.delivery.state} />
              <Button onClick={() => replay.mutate({ params: { id } })} isBusy={replay.isPending}>
                Replay
              </Button>
            </div>
            <ErrorMessage error={replay.error} />
            {replay.isSuccess && <p role="status">The delivery is sent again, with the same body and webhook-id.</p>}
            <Facts rows={toFacts(detail)} />
            <section>
              <h3 className="mb-2 font-semibold">Request</h3>
              <Code label={`POST ${toHost(detail.delivery.url)}`} text={detail.body} />
            </section>
            <Attempts attempts={detail.attempts} />
          </div>
        )}
      </Loaded>
    </Dialog>
  )
}

function toFacts({ delivery }: DeliveryDetail): [string, ReactNode][] {
  const mono = 'font-mono text-xs break-all'
  return [
    [
      'Receiver',
      <code key="url" className={mono}>
        {delivery.url}
      </code>,
    ],
    [
      'Scan',
      <Link
        key="scan"
        to="/history"
        search={{ scan: delivery.scan_id }}
        className={`${mono} text-brand hover:underline`}
      >
        {delivery.scan_id}
      </Link>,
    ],
    [
      'webhook-id',
      <code key="id" className={mono}>
        {delivery.id}
      </code>,
    ],
    ['Created', toExactTime(delivery.created_at)],
    [
      'Next attempt',
      delivery.next_at === null ? 'None' : `${toAge(delivery.next_at)}, ${toExactTime(delivery.next_at)}`,
    ],
  ]
}

function Attempts({ attempts }: Pick<DeliveryDetail, 'attempts'>) {
  return (
    <section aria-label="Attempts">
      <h3 className="mb-3 font-semibold">Attempts</h3>
      {attempts.length === 0 && <p className="text-soft">No attempts yet.</p>}
      <ol className="flex flex-col gap-4 border-l-2 border-line pl-4">
        {attempts.map(({ at, status, duration_ms, answer }) => (
          <li key={at} className="flex flex-col gap-1">
            <p className="flex flex-wrap justify-between gap-x-3">
              <span className="font-medium">
                {status === null ? 'No response' : `Status ${status}`}
                <span className="font-normal text-soft"> after {duration_ms} ms</span>
              </span>
              <time dateTime={at} className="text-soft">
                {toExactTime(at)}
              </time>
            </p>
            {answer !== '' && (
              <pre className="rounded-lg bg-sunk px-3 py-2 font-mono text-xs break-all whitespace-pre-wrap">
                {answer}
              </pre>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}

const toHost = (url: string) => (URL.canParse(url) ? new URL(url).host : url)
