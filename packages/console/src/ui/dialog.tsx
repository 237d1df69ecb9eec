import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import type { ApiError } from '../api/call.ts'
import { Button } from './button.tsx'
import { ErrorMessage } from './states.tsx'

type Props = {
  title: string
  /** Undefined for a dialog that stays open until its form is sent: Escape does not close it. */
  onClose: (() => void) | undefined
  children: ReactNode
  /** Makes the dialog a drawer. */
  side?: boolean
}

/** A modal dialog element, which traps the focus, closes on Escape and restores the focus. */
export function Dialog({ title, onClose, children, side = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // A layout effect closes the dialog while it is still in the document; only then can it restore the focus.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    const focused = element?.querySelector('[data-focus]') ?? element?.querySelector('input, select, textarea')
    if (!side && focused instanceof HTMLElement) focused.focus()
    return () => element?.close()
  }, [side])
  const layout = side
    ? 'm-0 ml-auto h-dvh max-h-none w-full max-w-xl border-l'
    : 'm-auto max-h-[calc(100dvh-2rem)] w-[calc(100%-2rem)] max-w-lg rounded-xl border'
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={() => {
        if (dialog.current?.open !== false) return
        if (onClose === undefined) dialog.current.showModal()
        else onClose()
      }}
      onCancel={(event) => {
        // The cancel event of a file chooser inside the dialog bubbles up to here.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        onClose?.()
      }}
      className={`overflow-y-auto border-line bg-panel text-ink shadow-xl ${layout}`}
    >
      <div className="sticky top-0 z-10 flex items-start justify-between gap-4 border-b border-line bg-panel px-5 py-3.5">
        <h2 id={id} className="min-w-0 pt-0.5 text-base font-semibold [overflow-wrap:anywhere]">
          {title}
        </h2>
        {onClose !== undefined && (
          <Button variant="ghost" onClick={onClose} aria-label="Close" isSmall className="-mr-1">
            ✕
          </Button>
        )}
      </div>
      <div className="p-5">{children}</div>
    </dialog>
  )
}

/** The row of buttons at the end of a dialog. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className="mt-6 flex flex-wrap justify-end gap-2">{children}</div>
}

/** A dialog that shows something, with a button to close it. */
export function InfoDialog({ action = 'Close', children, ...rest }: Omit<Props, 'side'> & { action?: string }) {
  return (
    <Dialog {...rest}>
      <div className="flex flex-col gap-4">{children}</div>
      <Actions>
        <Button variant="primary" onClick={rest.onClose}>
          {action}
        </Button>
      </Actions>
    </Dialog>
  )
}

type FormProps = {
  title: string
  onClose: () => void
  form: { submit: (event: FormEvent) => void; error: ApiError | null | undefined; isBusy: boolean }
  /** Label of the button that submits the form. */
  action: string
  isDangerous?: boolean
  canSubmit?: boolean
  children: ReactNode
}

/** A dialog with a form, its error, and buttons to cancel and to submit. */
export function FormDialog({ title, onClose, form, action, isDangerous, canSubmit = true, children }: FormProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        {children}
        <ErrorMessage error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant={isDangerous ? 'danger' : 'primary'} isBusy={form.isBusy} disabled={!canSubmit}>
            {action}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
