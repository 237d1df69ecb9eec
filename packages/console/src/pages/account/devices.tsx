import type { OpenSession } from '@assay/contract/admin'
import { useState } from 'react'
import type { Static } from 'typebox'
import { useChange, useRead } from '../../api/hooks.ts'
import { useSignOut } from '../../api/use-sign-out.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Card } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Device = Static<typeof OpenSession>

/** The browsers in which the person is signed in, each with a button that signs it out. */
export function DevicesCard() {
  const sessions = useRead('listSessions')
  const signOut = useSignOut('signOutEverywhere')
  const [isEndingAll, setEndingAll] = useState(false)
  const [ending, setEnding] = useState<Device>()
  return (
    <Card title="Devices" actions={<Button onClick={() => setEndingAll(true)}>Sign out everywhere</Button>}>
      <p className="mb-4 text-soft">
        You are signed in on these devices. Sign out those that you do not know, and change your password.
      </p>
      <Loaded query={sessions}>
        {(rows) => (
          <Table
            caption="Your devices"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Browser',
                cell: ({ agent, is_this }) => (
                  <span className="flex flex-wrap items-center gap-x-2">
                    <span title={agent}>{toBrowser(agent)}</span>
                    {is_this && <Badge tone="brand">this device</Badge>}
                  </span>
                ),
              },
              { title: 'Address', cell: ({ address }) => <code className="font-mono text-xs">{address}</code> },
              { title: 'Signed in', cell: ({ created_at }) => <Age at={created_at} />, isExtra: true },
              { title: 'Last seen', cell: ({ last_seen_at }) => <Age at={last_seen_at} /> },
              {
                title: 'Actions',
                isActions: true,
                cell: (device) =>
                  !device.is_this && (
                    <Button isSmall onClick={() => setEnding(device)}>
                      Sign out
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {ending !== undefined && <EndSession device={ending} onClose={() => setEnding(undefined)} />}
      {isEndingAll && (
        <Confirm
          title="Sign out everywhere"
          action="Sign out"
          mutation={signOut}
          onConfirm={() => signOut.mutate()}
          onClose={() => setEndingAll(false)}
        >
          This ends all your sessions, including this one. API keys keep working.
        </Confirm>
      )}
    </Card>
  )
}

function EndSession({ device, onClose }: { device: Device; onClose: () => void }) {
  const end = useChange('endSession', { onDone: onClose })
  return (
    <Confirm
      title="Sign out a device"
      action="Sign out"
      mutation={end}
      onConfirm={() => end.mutate({ params: { id: device.id } })}
      onClose={onClose}
    >
      This ends the session of {toBrowser(device.agent)} at {device.address}. Your other sessions stay.
    </Confirm>
  )
}

/** Describes a user agent, such as “Chrome on Linux”. Agents that are not browsers keep their own name. */
function toBrowser(agent: string): string {
  const names: [string, string][] = [
    ['Edg/', 'Edge'],
    ['OPR/', 'Opera'],
    ['Firefox/', 'Firefox'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
  ]
  const systems: [string, string][] = [
    ['Windows', 'Windows'],
    ['Android', 'Android'],
    ['iPhone', 'iPhone'],
    ['iPad', 'iPad'],
    ['Mac OS', 'macOS'],
    ['Linux', 'Linux'],
  ]
  const find = (all: [string, string][]) => all.find(([mark]) => agent.includes(mark))?.[1]
  const name = find(names)
  if (name === undefined) return agent.slice(0, 60) || 'unknown'
  const system = find(systems)
  return system === undefined ? name : `${name} on ${system}`
}
