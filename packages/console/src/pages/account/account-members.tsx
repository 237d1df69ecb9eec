import type { Member } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure, Reading } from '../../ui/feedback.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { toAge } from '../../ui/format.ts'
import { Table } from '../../ui/table.tsx'

type Gone = { id: string; name: string; isInvitation: boolean }
type Props = { canManage: boolean; ownId: string | undefined }

/** Who holds the account. Owners invite and remove. */
export function MembersCard({ canManage, ownId }: Props) {
  const members = useRead('listMembers')
  const [isInviting, setInviting] = useState(false)
  const [gone, setGone] = useState<Gone>()
  return (
    <section className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 className="font-semibold">Members</h2>
        {canManage && <Button onClick={() => setInviting(true)}>Invite somebody</Button>}
      </div>
      <Reading of={members}>
        {({ members, invitations }) => (
          <>
            <Table
              caption="Members"
              rows={members}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Name', cell: (member) => <Name member={member} isYou={member.id === ownId} /> },
                { title: 'Role', cell: ({ role }) => role },
                {
                  title: 'Code at sign-in',
                  cell: ({ has_totp }) => <Badge tone={has_totp ? 'clean' : 'plain'}>{has_totp ? 'on' : 'off'}</Badge>,
                  isExtra: true,
                },
                {
                  title: 'Last seen',
                  cell: ({ last_seen_at }) => (last_seen_at === null ? 'Not yet' : toAge(last_seen_at)),
                  isExtra: true,
                },
                ...(canManage
                  ? [
                      {
                        title: 'Actions',
                        isActions: true,
                        cell: ({ id, name, role }: Member) =>
                          id !== ownId &&
                          role !== 'operator' && (
                            <RemoveButton name={name} onClick={() => setGone({ id, name, isInvitation: false })} />
                          ),
                      },
                    ]
                  : []),
              ]}
            />
            {invitations.length > 0 && (
              <>
                <h3 className="mt-2 font-semibold">Open invitations</h3>
                <Table
                  caption="Open invitations"
                  rows={invitations}
                  keyOf={({ id }) => id}
                  columns={[
                    { title: 'Invited', cell: ({ email }) => email ?? 'Whoever has the link' },
                    { title: 'Role', cell: ({ role }) => role },
                    { title: 'Ends', cell: ({ expires_at }) => toAge(expires_at) },
                    ...(canManage
                      ? [
                          {
                            title: 'Actions',
                            isActions: true,
                            cell: ({ id, email }: { id: string; email: string | null }) => {
                              const name = email ?? 'the invitation'
                              return (
                                <RemoveButton name={name} onClick={() => setGone({ id, name, isInvitation: true })} />
                              )
                            },
                          },
                        ]
                      : []),
                  ]}
                />
              </>
            )}
          </>
        )}
      </Reading>
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
      {gone !== undefined && <RemoveDialog gone={gone} onClose={() => setGone(undefined)} />}
    </section>
  )
}

function Name({ member, isYou }: { member: Member; isYou: boolean }) {
  return (
    <span className="flex flex-col">
      <span className="flex items-center gap-2 font-medium">
        <span className="max-w-60 truncate">{member.name}</span> {isYou && <Badge tone="brand">you</Badge>}
      </span>
      <span className="max-w-60 truncate text-xs text-soft">{member.email}</span>
    </span>
  )
}

function RemoveButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <Button onClick={onClick} aria-label={`Remove ${name}`} className="px-2.5 py-1 text-xs">
      Remove
    </Button>
  )
}

function InviteDialog({ onClose }: { onClose: () => void }) {
  const [url, setUrl] = useState<string>()
  const form = useForm('inviteMember', { role: 'member' }, { onDone: (made) => setUrl(made.url) })
  if (url !== undefined) {
    return (
      <Dialog title="The invitation" onClose={onClose}>
        <Secret label="Send this link yourself. It works once, and is not shown again." text={url} />
        <Actions>
          <Button look="main" onClick={onClose}>
            I have copied it
          </Button>
        </Actions>
      </Dialog>
    )
  }
  return (
    <Dialog title="Invite somebody" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <SelectField
          label="Role"
          value={form.values.role}
          hint="Members do all but manage members."
          options={[
            ['member', 'Member'],
            ['owner', 'Owner'],
          ]}
          onText={(role) => form.set({ role: role as 'member' | 'owner' })}
        />
        <TextField
          label="Email (optional)"
          type="email"
          hint="The link is then for this address alone. No mail is sent."
          error={form.errorOf('email')}
          onText={(email) => form.set({ email: email === '' ? undefined : email } as { email: string })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Make the link
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function RemoveDialog({ gone, onClose }: { gone: Gone; onClose: () => void }) {
  const remove = useChange('removeMember', { onDone: onClose })
  return (
    <Confirm
      title={`Remove ${gone.name}`}
      action="Remove"
      of={remove}
      onConfirm={() => remove.mutate({ params: { id: gone.id } })}
      onClose={onClose}
    >
      {gone.isInvitation ? 'The link does not work any more.' : 'They are signed out at once and cannot come back.'}
    </Confirm>
  )
}
