import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Button } from '../../ui/button.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { More } from '../../ui/table.tsx'
import { DeliveryDrawer } from './delivery-drawer.tsx'
import { DeliveryTable } from './delivery-table.tsx'
import { ReplayFailed } from './replay-failed.tsx'

type State = 'pending' | 'delivered' | 'dead' | 'stopped'

/** The log of what was sent. */
export function DeliveriesSection() {
  const [{ state, cursor, scan, delivery }, setAddress] = useAddress()
  const [isReplaying, setReplaying] = useState(false)
  const query = {
    limit: '25',
    ...(state === undefined ? {} : { state: state as State }),
    ...(scan === undefined ? {} : { scan }),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const deliveries = useRead('listDeliveries', { query }, { liveMs: 5000 })
  return (
    <section className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <h2 className="font-semibold">Deliveries</h2>
        <div className="flex flex-wrap items-end gap-3">
          <SelectField
            label="State"
            value={state ?? ''}
            onText={(state) => setAddress({ state, cursor: undefined })}
            options={[
              ['', 'All'],
              ['pending', 'Pending'],
              ['delivered', 'Delivered'],
              ['dead', 'Given up'],
              ['stopped', 'Stopped by 410'],
            ]}
          />
          <Button onClick={() => setReplaying(true)}>Replay failed</Button>
        </div>
      </div>
      <Reading of={deliveries}>
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <DeliveryTable deliveries={items} onOpen={(id) => setAddress({ delivery: id })} />
            ) : (
              <Empty title={state === undefined ? 'Nothing was sent yet' : 'No delivery is in this state'}>
                Submit a scan in the background with a callback URL, and its delivery is listed here.
              </Empty>
            )}
            <div className="flex flex-wrap items-center justify-center gap-3">
              {cursor !== undefined && (
                <Button look="quiet" onClick={() => setAddress({ cursor: undefined })}>
                  Newest
                </Button>
              )}
              <More next={next} onMore={(cursor) => setAddress({ cursor }, { asNewPage: true })} />
            </div>
          </>
        )}
      </Reading>
      {delivery !== undefined && (
        <DeliveryDrawer key={delivery} id={delivery} onClose={() => setAddress({ delivery: undefined })} />
      )}
      {isReplaying && <ReplayFailed onClose={() => setReplaying(false)} />}
    </section>
  )
}
