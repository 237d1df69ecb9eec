import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { toReplayed } from '../../ui/format.ts'
import { Pager } from '../../ui/pager.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { DeliveryDrawer } from './delivery-drawer.tsx'
import { DeliveryTable } from './delivery-table.tsx'

type State = 'pending' | 'delivered' | 'dead' | 'stopped'

/** The log of webhook deliveries. */
export function DeliveriesSection() {
  const [{ state, cursor, scan, delivery }, setParams] = useSearchParams()
  const [isReplaying, setReplaying] = useState(false)
  const filter = {
    ...(state === undefined ? {} : { state: state as State }),
    ...(scan === undefined ? {} : { scan }),
  }
  const query = { limit: '25', ...filter, ...(cursor === undefined ? {} : { cursor }) }
  const deliveries = useRead('listDeliveries', { query }, { liveMs: 5000 })
  return (
    <section className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <h2 className="font-semibold">Deliveries</h2>
        <div className="flex flex-wrap items-end gap-3">
          <SelectField
            label="State"
            value={state ?? ''}
            onText={(state) => setParams({ state, cursor: undefined })}
            options={[
              ['', 'All'],
              ['pending', 'Pending'],
              ['delivered', 'Delivered'],
              ['dead', 'Failed'],
              ['stopped', 'Stopped (410 Gone)'],
            ]}
          />
          <ExportLinks list="listDeliveries" input={{ query: filter }} />
          <Button onClick={() => setReplaying(true)}>Replay failed</Button>
        </div>
      </div>
      <Loaded query={deliveries}>
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <DeliveryTable deliveries={items} onOpen={(id) => setParams({ delivery: id })} />
            ) : (
              <Empty title={state === undefined ? 'No deliveries yet' : 'No deliveries in this state'}>
                Deliveries of background scans with a callback URL appear here.
              </Empty>
            )}
            <Pager next={next} />
          </>
        )}
      </Loaded>
      {delivery !== undefined && (
        <DeliveryDrawer key={delivery} id={delivery} onClose={() => setParams({ delivery: undefined })} />
      )}
      {isReplaying && <ReplayFailed onClose={() => setReplaying(false)} />}
    </section>
  )
}

const dayMs = 86_400_000
const replayTitle = 'Replay failed deliveries'

/** Sends all failed deliveries since a given time again, such as after the receiver is fixed. */
function ReplayFailed({ onClose }: { onClose: () => void }) {
  const [start] = useState(() => new Date(Date.now() - dayMs))
  const [replayed, setReplayed] = useState<number>()
  const form = useForm(
    'replayFailed',
    { since: start.toISOString() },
    { onDone: (answer) => setReplayed(answer.replayed) },
  )
  if (replayed !== undefined) {
    return (
      <InfoDialog title={replayTitle} onClose={onClose}>
        <p role="status">{toReplayed(replayed)}</p>
      </InfoDialog>
    )
  }
  return (
    <FormDialog title={replayTitle} action="Replay all" form={form} onClose={onClose}>
      <p className="text-soft">
        Sends all deliveries again that failed or were stopped since this time, and those that wait for a paused
        receiver.
      </p>
      <TextField
        label="Failed since"
        type="datetime-local"
        defaultValue={toLocal(start)}
        error={form.errorOf('since')}
        onText={(local) => form.set({ since: local === '' ? '' : new Date(local).toISOString() })}
      />
    </FormDialog>
  )
}

/** The format of a datetime-local field: local time without a zone. */
const toLocal = (date: Date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
