import type { ReactNode } from 'react'
import type { ApiError } from '../api/call.ts'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { Failure } from './feedback.tsx'

/** Asks once more before something that hurts when it was not meant. */
export function Confirm({
  title,
  action,
  of,
  onConfirm,
  onClose,
  children,
}: {
  title: string
  /** What the button says, such as “Remove”. */
  action: string
  of: { isPending: boolean; error: ApiError | Error | null }
  onConfirm: () => void
  onClose: () => void
  children: ReactNode
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <div className="text-soft [overflow-wrap:anywhere]">{children}</div>
        <Failure error={of.error} />
      </div>
      <Actions>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="danger" isBusy={of.isPending} onClick={onConfirm}>
          {action}
        </Button>
      </Actions>
    </Dialog>
  )
}
