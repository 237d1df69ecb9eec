import type { Member } from '@assay/contract/admin'
import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { personColumns } from '../../ui/person-columns.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Invitation = Answer<'listMembers'>['invitations'][number]
/** A member or invitation that the user is about to remove. */
type Removal = { id: string; name: string; isInvitation: boolean }
type Props = { canManage: boolean; ownId: string | undefined }

/** Members and open invitations. Owners can invite and remove. */
export function MembersCard({ canManage, ownId }: Props) {
  const query = useRead('listMembers')
  const [isInviting, setInviting] = useState(false)
  const [removal, setRemoval] = useState<Removal>()
  const onRemove = canManage ? setRemoval : undefined
  return (
    <section className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 className="font-semibold">Members</h2>
        {canManage && <Button onClick={() => setInviting(true)}>Invite a member</Button>}
      </div>
      <Loaded query={query}>
        {({ members, invitations }) => (
          <>
            <Members members={members} ownId={ownId} onRemove={onRemove} />
            {invitations.length > 0 && <Invitations invitations={invitations} onRemove={onRemove} />}
          </>
        )}
      </Loaded>
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
      {removal !== undefined && <RemoveDialog removal={removal} onClose={() => setRemoval(undefined)} />}
    </section>
  )
}

type OnRemove = ((removal: Removal) => void) | undefined

function Members({ members, ownId, onRemove }: { members: Member[]; ownId: string | undefined; onRemove: OnRemove }) {
  const isRemovable = ({ id }: Member) => id !== ownId
  return (
    <Table
      caption="Members"
      rows={members}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Name', cell: (member) => <Name member={member} isYou={member.id === ownId} /> },
        { title: 'Role', cell: ({ role, is_operator }) => (is_operator ? `${role}, operator` : role) },
        ...personColumns,
        ...toRemoveColumn<Member>(onRemove, (member) =>
          isRemovable(member) ? { id: member.id, name: member.name, isInvitation: false } : undefined,
        ),
      ]}
    />
  )
}

function Invitations({ invitations, onRemove }: { invitations: Invitation[]; onRemove: OnRemove }) {
  return (
    <>
      <h3 className="mt-2 font-semibold">Open invitations</h3>
      <Table
        caption="Open invitations"
        rows={invitations}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Invited', cell: ({ email }) => email ?? 'Anyone with the link' },
          { title: 'Role', cell: ({ role }) => role },
          { title: 'Expires', cell: ({ expires_at }) => <Age at={expires_at} /> },
          ...toRemoveColumn<Invitation>(onRemove, ({ id, email }) => ({
            id,
            name: email ?? 'the invitation',
            isInvitation: true,
          })),
        ]}
      />
    </>
  )
}

/** The column with the button that removes a row, for users who may do so. */
function toRemoveColumn<T>(onRemove: OnRemove, findRemoval: (row: T) => Removal | undefined): Column<T>[] {
  if (onRemove === undefined) return []
  const cell = (row: T) => {
    const removal = findRemoval(row)
    if (removal === undefined) return false
    return (
      <Button isSmall onClick={() => onRemove(removal)} aria-label={`Remove ${removal.name}`}>
        Remove
      </Button>
    )
  }
  return [{ title: 'Actions', isActions: true, cell }]
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

function InviteDialog({ onClose }: { onClose: () => void }) {
  const [url, setUrl] = useState<string>()
  const form = useForm(
    'inviteMember',
    { role: 'member', email: '' },
    { onDone: (invitation) => setUrl(invitation.url) },
  )
  if (url !== undefined) {
    return (
      <InfoDialog title="Invitation" action="I have copied it" onClose={onClose}>
        <Secret label="Send this link to the person. It works once and is not shown again." text={url} />
      </InfoDialog>
    )
  }
  return (
    <FormDialog title="Invite a member" action="Create link" form={form} onClose={onClose}>
      <SelectField
        label="Role"
        value={form.values.role}
        hint="Members can do everything except manage members."
        options={[
          ['member', 'Member'],
          ['owner', 'Owner'],
        ]}
        onText={(role) => form.set({ role: role as 'member' | 'owner' })}
      />
      <TextField
        label="Email"
        type="email"
        hint="The link works for this address only. No email is sent."
        {...form.text('email')}
      />
    </FormDialog>
  )
}

function RemoveDialog({ removal, onClose }: { removal: Removal; onClose: () => void }) {
  const remove = useChange('removeMember', {
    onDone: ({ keys }) => {
      if (keys.length === 0) onClose()
    },
  })
  if (remove.data !== undefined && remove.data.keys.length > 0) {
    return (
      <InfoDialog title={`${removal.name} is removed`} onClose={onClose}>
        <p>The member created these keys, which keep working. Revoke or rotate them on the page API keys.</p>
        <ul className="list-disc pl-5">
          {remove.data.keys.map(({ id, name, prefix }) => (
            <li key={id}>
              {name} <code className="font-mono text-xs text-soft">{prefix}…</code>
            </li>
          ))}
        </ul>
      </InfoDialog>
    )
  }
  return (
    <Confirm
      title={`Remove ${removal.name}`}
      action="Remove"
      mutation={remove}
      onConfirm={() => remove.mutate({ params: { id: removal.id } })}
      onClose={onClose}
    >
      {removal.isInvitation ? 'The link stops working.' : 'This signs the member out and removes their access.'}
    </Confirm>
  )
}
