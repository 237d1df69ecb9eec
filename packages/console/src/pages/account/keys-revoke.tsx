import type { KeyRow } from '@assay/contract/admin'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'

/** For good, so its name must be typed. */
export function RevokeKey({ apiKey, onClose }: { apiKey: KeyRow; onClose: () => void }) {
  const form = useForm('revokeKey', { name: '' }, { params: { id: apiKey.id }, onDone: onClose })
  return (
    <Dialog title={`Revoke ${apiKey.name}`} onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <p className="text-soft">
          Whatever uses <code className="font-mono text-xs text-ink">{apiKey.prefix}…</code> is refused from this moment
          on. This cannot be undone.
        </p>
        <TextField
          label={`Type “${apiKey.name}” to confirm`}
          autoComplete="off"
          value={form.values.name}
          error={form.errorOf('name')}
          onText={(name) => form.set({ name })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="danger" isBusy={form.isBusy} disabled={form.values.name !== apiKey.name}>
            Revoke
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
