import type { AlertChannel, Alerts } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, ErrorMessage, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'
import { AddChannel, EditChannel } from './channel-dialogs.tsx'
import { kindNames, routes, type Scope, shortTopicNames } from './scope.ts'

const abouts: Record<Scope, string> = {
  operator: 'Messages about the whole installation, when a problem begins and when it is over.',
  account: 'Messages about this account, when a problem begins and when it is over.',
}

export const OperatorAlertsPage = () => <AlertsPage scope="operator" />
export const AccountAlertsPage = () => <AlertsPage scope="account" />

function AlertsPage({ scope }: { scope: Scope }) {
  const alerts = useRead(routes[scope].read, {}, { liveMs: 10_000 })
  const [isAdding, setAdding] = useState(false)
  return (
    <Page
      title="Alerts"
      about={abouts[scope]}
      actions={
        <Button variant="primary" onClick={() => setAdding(true)}>
          Add a channel
        </Button>
      }
    >
      <Loaded query={alerts}>
        {(data) => (
          <>
            <OpenAlerts {...data} />
            {data.channels.length === 0 ? (
              <Empty title="No channels">
                Add an email address, a webhook, or a Slack or Teams channel, and choose what it should hear of. Without
                a channel nothing is sent.
              </Empty>
            ) : (
              <Channels scope={scope} channels={data.channels} />
            )}
            {isAdding && <AddChannel scope={scope} hasEmail={data.has_email} onClose={() => setAdding(false)} />}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function OpenAlerts({ open }: Pick<Alerts, 'open'>) {
  if (open.length === 0) return null
  return (
    <section aria-label="Open alerts" className="rounded-xl border border-line bg-error-soft p-4">
      <h2 className="font-semibold">Open alerts</h2>
      <ul className="mt-2 flex list-disc flex-col gap-1 pl-5">
        {open.map(({ text, since }) => (
          <li key={text} className="[overflow-wrap:anywhere]">
            {text}{' '}
            <span className="text-soft">
              Began <Age at={since} />.
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Channels({ scope, channels }: { scope: Scope; channels: AlertChannel[] }) {
  const [toEdit, setToEdit] = useState<AlertChannel>()
  const [toRemove, setToRemove] = useState<AlertChannel>()
  const remove = useChange(routes[scope].remove, { onDone: () => setToRemove(undefined) })
  const test = useChange(routes[scope].test)
  const tested = channels.find(({ id }) => id === test.variables?.params?.id)
  return (
    <>
      <Table
        caption="Channels"
        rows={channels}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Channel',
            cell: ({ kind, target }) => (
              <div className="@2xl:min-w-40">
                <span className="font-medium">{kindNames[kind]}</span>
                <LongText>{target}</LongText>
              </div>
            ),
          },
          { title: 'Topics', cell: toTopics },
          { title: 'Last message', cell: (channel) => <LastMessage {...channel} /> },
          {
            title: 'Actions',
            isActions: true,
            cell: (channel) => (
              <div className="flex flex-wrap gap-2 @2xl:justify-end @4xl:flex-nowrap">
                <Button
                  isSmall
                  isBusy={test.isPending && tested?.id === channel.id}
                  aria-label={`Send a test to ${channel.target}`}
                  onClick={() => test.mutate({ params: { id: channel.id } })}
                >
                  Test
                </Button>
                <Button isSmall aria-label={`Edit ${channel.target}`} onClick={() => setToEdit(channel)}>
                  Edit
                </Button>
                <Button isSmall aria-label={`Remove ${channel.target}`} onClick={() => setToRemove(channel)}>
                  Remove
                </Button>
              </div>
            ),
          },
        ]}
      />
      {/* Below the table: above it, the rows would move under the pointer. */}
      <div role="status" className="empty:hidden">
        {test.data !== undefined && tested !== undefined && (
          <p className="flex flex-wrap items-center gap-2 rounded-lg border border-line bg-panel px-4 py-3">
            <Badge tone={test.data.delivered ? 'clean' : 'threat'}>
              {test.data.delivered ? '✓ accepted' : '! not sent'}
            </Badge>
            <span className="min-w-0 [overflow-wrap:anywhere]">
              {tested.target}: {test.data.detail}
            </span>
          </p>
        )}
      </div>
      <ErrorMessage error={test.error} />
      {toEdit !== undefined && <EditChannel scope={scope} channel={toEdit} onClose={() => setToEdit(undefined)} />}
      {toRemove !== undefined && (
        <Confirm
          title="Remove the channel"
          action="Remove"
          mutation={remove}
          onConfirm={() => remove.mutate({ params: { id: toRemove.id } })}
          onClose={() => setToRemove(undefined)}
        >
          {kindNames[toRemove.kind]} {toRemove.target} gets no more messages.
        </Confirm>
      )}
    </>
  )
}

const toTopics = ({ topics, threats_per_hour }: AlertChannel) =>
  topics
    .map((topic) => (topic === 'threats' ? `threats from ${threats_per_hour} per hour` : shortTopicNames[topic]))
    .join(', ')

function LastMessage({ sent_at, failure }: AlertChannel) {
  if (failure !== null) {
    return (
      <>
        <Badge tone="threat">! not sent</Badge> <LongText>{failure}</LongText>
      </>
    )
  }
  return <Age at={sent_at} />
}
