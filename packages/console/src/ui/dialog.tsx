import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { Button } from './button.tsx'

type Props = { title: string; onClose: () => void; children: ReactNode; side?: boolean }

/** The browser's own dialog: it holds the focus, closes on Escape and gives the focus back. `side` is a drawer. */
export function Dialog({ title, onClose, children, side = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before it is taken from the page: a dialog that is gone cannot give the focus back.
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    if (!side) shown?.querySelector<HTMLElement>('input, select, textarea')?.focus()
    return () => shown?.close()
  }, [side])
  const place = side
    ? 'm-0 ml-auto h-dvh max-h-none w-full max-w-xl border-l'
    : 'm-auto max-h-[calc(100dvh-2rem)] w-[calc(100%-2rem)] max-w-lg rounded-xl border'
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={() => {
        if (dialog.current?.open === false) onClose()
      }}
      onCancel={(event) => {
        // That of a file chooser within comes up here, too.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        onClose()
      }}
      className={`overflow-y-auto border-line bg-panel text-ink shadow-xl ${place}`}
    >
      <div className="sticky top-0 z-10 flex items-start justify-between gap-4 border-b border-line bg-panel px-5 py-3.5">
        <h2 id={id} className="min-w-0 pt-0.5 text-base font-semibold [overflow-wrap:anywhere]">
          {title}
        </h2>
        <Button look="quiet" onClick={onClose} aria-label="Close" isSmall className="-mr-1">
          ✕
        </Button>
      </div>
      <div className="p-5">{children}</div>
    </dialog>
  )
}

/** The row of buttons at the end of a form. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className="mt-6 flex flex-wrap justify-end gap-2">{children}</div>
}
