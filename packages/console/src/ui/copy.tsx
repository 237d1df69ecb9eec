import { type MouseEvent, useState } from 'react'
import { Button } from './button.tsx'

/** `what` tells those who only hear the page which of many it is. */
export function CopyButton({ text, label = 'Copy', what }: { text: string; label?: string; what?: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async (event: MouseEvent<HTMLButtonElement>) => {
    await writeClipboard(text, event.currentTarget)
    setCopied(true)
    setTimeout(() => setCopied(false), 2000)
  }
  return (
    <Button onClick={copy} aria-live="polite" className="px-2.5 py-1 text-xs">
      {isCopied ? 'Copied' : label}
      {what !== undefined && <span className="sr-only">{what}</span>}
    </Button>
  )
}

/** Browsers give the clipboard to pages over https only; a service in one's own network may have http alone. */
async function writeClipboard(text: string, near: HTMLElement) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  // Beside the button: below an open dialog nothing else can be selected.
  near.parentElement?.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
  near.focus()
}

/** A text to be taken over as it is. */
export function Code({ text, label, isWrapped = false }: { text: string; label?: string; isWrapped?: boolean }) {
  const wrap = isWrapped ? 'break-all whitespace-pre-wrap' : ''
  return (
    <figure className="overflow-hidden rounded-lg border border-line bg-sunk">
      <figcaption className="flex items-center justify-between gap-2 border-b border-line px-3 py-1.5 text-soft">
        <span>{label}</span>
        <CopyButton text={text} {...(label === undefined ? {} : { what: label })} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className={`max-h-112 overflow-auto px-3 py-2 font-mono text-xs leading-5 ${wrap}`} tabIndex={0}>
        {text}
      </pre>
    </figure>
  )
}

/** A secret that is shown this once. */
export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div className="flex flex-col gap-2">
      <p className="text-soft">{label}</p>
      <div className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 flex-1 rounded-lg border border-line bg-sunk px-3 py-2 font-mono text-xs break-all">
          {text}
        </code>
        <CopyButton text={text} what="secret" />
      </div>
    </div>
  )
}
