import { type ReactNode, useEffect, useId, useRef } from 'react'
import { Button } from './button.tsx'

type Props = { title: string; onClose: () => void; children: ReactNode; side?: boolean }

/** The browser's own dialog: it holds the focus, closes on Escape and gives the focus back. `side` is a drawer. */
export function Dialog({ title, onClose, children, side = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => shown?.close()
  }, [])
  const place = side
    ? 'm-0 ml-auto h-dvh max-h-none w-full max-w-xl rounded-none border-l'
    : 'm-auto w-[calc(100%-2rem)] max-w-lg rounded-xl border'
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      className={`overflow-y-auto border-line bg-panel p-5 text-ink shadow-xl ${place}`}
    >
      <div className="mb-4 flex items-start justify-between gap-4">
        <h2 id={id} className="text-lg font-semibold">
          {title}
        </h2>
        <Button look="quiet" onClick={onClose} aria-label="Close" className="-mt-1 -mr-2 px-2">
          ✕
        </Button>
      </div>
      {children}
    </dialog>
  )
}

/** The row of buttons at the end of a form. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className="mt-6 flex flex-wrap justify-end gap-2">{children}</div>
}
