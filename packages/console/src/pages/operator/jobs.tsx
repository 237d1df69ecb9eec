import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty, Failure, Reading } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toAge, toBytes } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { More, Table } from '../../ui/table.tsx'

type Job = Answer<'listJobs'>['items'][number]
type State = 'waiting' | 'running' | 'paused' | 'stuck'

const tones: Record<Job['state'], Tone> = { waiting: 'pending', running: 'brand', paused: 'error' }
const kinds: Record<string, string> = { malware: 'malware', nsfw_image: 'NSFW image' }
const nothing: Record<State | 'all', string> = {
  all: 'Nothing waits or runs',
  waiting: 'Nothing waits',
  running: 'Nothing runs',
  paused: 'Nothing is paused',
  stuck: 'Nothing is stuck',
}

/** Background scans of all accounts, oldest first. Never their content. */
export function JobsPage() {
  const [address, setAddress] = useAddress()
  const { state, cursor } = address as { state?: State; cursor?: string }
  const jobs = useRead('listJobs', { query: { ...(state && { state }), ...(cursor && { cursor }) } }, { liveMs: 2000 })
  return (
    <Page title="Jobs" about="Scans in the background that wait or run, oldest first. What is done is gone from here.">
      <div className="max-w-72">
        <SelectField
          label="Show"
          value={state ?? ''}
          options={[
            ['', 'All'],
            ['waiting', 'Waiting'],
            ['running', 'Running'],
            ['paused', 'Paused after a failure'],
            ['stuck', 'Stuck: tried before, or old'],
          ]}
          onText={(text) => setAddress({ state: text, cursor: undefined })}
        />
      </div>
      <Reading of={jobs}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={nothing[state ?? 'all']}>Jobs appear here by themselves while they wait or run.</Empty>
          ) : (
            <>
              <Jobs rows={items} />
              <More label="Newer ones" next={next} onMore={(cursor) => setAddress({ cursor }, { asNewPage: true })} />
            </>
          )
        }
      </Reading>
    </Page>
  )
}

function Jobs({ rows }: { rows: Job[] }) {
  const retry = useChange('retryJob')
  return (
    <>
      <Failure error={retry.error} />
      <Table
        caption="Jobs"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Account',
            cell: ({ account_name, id }) => (
              <span className="flex flex-col">
                <Long>
                  <span className="font-medium">{account_name}</span>
                </Long>
                <code className="font-mono text-xs whitespace-nowrap text-faint">{id}</code>
              </span>
            ),
          },
          {
            title: 'State',
            cell: ({ state, held_until }) => (
              <span className="flex flex-col items-start gap-0.5">
                <Badge tone={tones[state]}>{state}</Badge>
                {state === 'paused' && held_until !== null && (
                  <span className="block text-faint md:max-w-24 md:leading-5">next try {toAge(held_until)}</span>
                )}
              </span>
            ),
          },
          {
            title: 'Kind',
            cell: ({ scan_type }) => <span className="whitespace-nowrap">{kinds[scan_type] ?? scan_type}</span>,
          },
          {
            title: 'Size',
            isNumber: true,
            cell: (job) => <span className="whitespace-nowrap">{toBytes(job.content_length)}</span>,
          },
          { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
          { title: 'Since', cell: ({ created_at }) => <span className="whitespace-nowrap">{toAge(created_at)}</span> },
          {
            title: 'Actions',
            isActions: true,
            cell: (job) =>
              job.state === 'paused' && (
                <Button
                  isSmall
                  aria-label={`Try now: ${job.id}`}
                  onClick={() => retry.mutate({ params: { id: job.id } })}
                >
                  Try now
                </Button>
              ),
          },
        ]}
      />
    </>
  )
}
