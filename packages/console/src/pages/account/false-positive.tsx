import type { ScanResult } from '@assay/contract'
import { useState } from 'react'
import { useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Choice } from '../../ui/choice.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure, Notice } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'

/** For operators: what was found wrongly is allowed from now on, for every account. */
export function FalsePositive({ result, onAgain }: { result: ScanResult; onAgain?: () => void }) {
  const session = useSession()
  const [isOpen, setOpen] = useState(false)
  const [isAllowed, setAllowed] = useState(false)
  if (session.data?.member.role !== 'operator') return null
  if (isAllowed) {
    return (
      <Notice>
        <span className="flex flex-wrap items-center justify-between gap-3">
          <span role="status">Allowed. The next scan of it is clean.</span>
          {onAgain !== undefined && <Button onClick={onAgain}>Scan again</Button>}
        </span>
      </Notice>
    )
  }
  return (
    <div>
      <Button onClick={() => setOpen(true)}>False positive: allow this</Button>
      {isOpen && (
        <AllowDialog
          result={result}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            setAllowed(true)
          }}
        />
      )}
    </div>
  )
}

function AllowDialog({ result, onClose, onDone }: { result: ScanResult; onClose: () => void; onDone: () => void }) {
  const sha256 = result.metadata?.hash_sha256
  const [signal] = result.signals ?? []
  const start = sha256 === undefined ? ('signal' as const) : ('sha256' as const)
  const form = useForm(
    'addListEntry',
    {
      list: 'allow',
      matches: start,
      value: sha256 ?? signal ?? '',
      reason: `False positive: ${result.content_name ?? result.id}`.slice(0, 500),
    },
    { onDone },
  )
  return (
    <Dialog title="Allow what was found" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <Choice
          label="Allow"
          value={form.values.matches}
          onChoose={(matches) => form.set({ matches, value: (matches === 'sha256' ? sha256 : signal) ?? '' })}
          options={[
            ...(sha256 === undefined
              ? []
              : [{ value: 'sha256' as const, label: 'This file', about: 'By its SHA-256' }]),
            ...(signal === undefined ? [] : [{ value: 'signal' as const, label: 'This signal', about: 'In any file' }]),
          ]}
        />
        <code className="rounded-lg bg-sunk px-3 py-2 font-mono text-xs break-all">{form.values.value}</code>
        <TextField
          label="Reason"
          hint="It stands in the audit log."
          value={form.values.reason}
          error={form.errorOf('reason') ?? form.errorOf('value')}
          onText={(reason) => form.set({ reason })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Allow
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
