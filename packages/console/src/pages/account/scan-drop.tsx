import { type DragEvent, useId, useState } from 'react'
import { markInvisible } from '../../api/marked-json.ts'
import { toBytes } from '../../ui/format.ts'

type Props = { file: File | undefined; onFile: (file: File) => void; error?: string | undefined; hint: string }

/** A file field whose label also accepts dropped files, usable by mouse, keyboard and screen reader. */
export function ScanDrop({ file, onFile, error, hint }: Props) {
  const [isOver, setOver] = useState(false)
  const id = useId()
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    const dropped = event.dataTransfer.files[0]
    if (dropped !== undefined) onFile(dropped)
  }
  return (
    <div className="flex flex-col gap-1">
      <input
        id={id}
        type="file"
        className="peer sr-only"
        aria-describedby={`${id}-about`}
        onChange={(event) => {
          const selected = event.target.files?.[0]
          if (selected !== undefined) onFile(selected)
          // Without a reset, selecting the same file again would not trigger a change event.
          event.target.value = ''
        }}
      />
      <label
        htmlFor={id}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        className={`flex min-h-32 cursor-pointer flex-col items-center justify-center gap-1 rounded-xl border-2 border-dashed px-4 py-6 text-center peer-focus-visible:outline-2 peer-focus-visible:outline-offset-2 peer-focus-visible:outline-brand ${isOver ? 'border-brand bg-brand-soft' : 'border-line hover:bg-sunk'}`}
      >
        <svg viewBox="0 0 24 24" className="size-7 text-faint" fill="none" stroke="currentColor" aria-hidden="true">
          <path d="M12 16V4m-5 5 5-5 5 5M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3" strokeWidth="1.6" />
        </svg>
        {file === undefined ? (
          <span>
            <span className="font-medium text-brand">Choose a file</span> or drop it here
          </span>
        ) : (
          <>
            <span className="font-medium break-all">{markInvisible(file.name)}</span>
            <span className="text-soft">{toBytes(file.size)}. Choose or drop another file</span>
          </>
        )}
      </label>
      <p id={`${id}-about`} className={error === undefined ? 'text-faint' : 'text-threat'} role={error && 'alert'}>
        {error ?? hint}
      </p>
    </div>
  )
}
