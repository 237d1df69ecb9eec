import type { ReactNode } from 'react'
import type { ApiError } from '../api/call.ts'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { ErrorMessage } from './states.tsx'

/** Asks for confirmation before a destructive action. */
export function Confirm({
  title,
  action,
  mutation,
  onConfirm,
  onClose,
  children,
}: {
  title: string
  /** Label of the button, such as “Remove”. */
  action: string
  mutation: { isPending: boolean; error: ApiError | Error | null }
  onConfirm: () => void
  onClose: () => void
  children: ReactNode
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <div className="text-soft [overflow-wrap:anywhere]">{children}</div>
        <ErrorMessage error={mutation.error} />
      </div>
      <Actions>
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="danger" isBusy={mutation.isPending} onClick={onConfirm}>
          {action}
        </Button>
      </Actions>
    </Dialog>
  )
}
