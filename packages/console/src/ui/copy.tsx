import { type MouseEvent, useState } from 'react'
import { Button } from './button.tsx'

/** `subject` tells screen readers what the button copies. */
export function CopyButton({ text, subject }: { text: string; subject?: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async (event: MouseEvent<HTMLButtonElement>) => {
    await writeClipboard(text, event.currentTarget)
    setCopied(true)
    setTimeout(() => setCopied(false), 2000)
  }
  return (
    <Button onClick={copy} aria-live="polite" isSmall>
      {isCopied ? 'Copied' : 'Copy'}
      {subject !== undefined && <span className="sr-only">{subject}</span>}
    </Button>
  )
}

/** Browsers offer the clipboard to https pages only; on http the text is copied from a temporary field. */
async function writeClipboard(text: string, near: HTMLElement) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  // The field must be beside the button: while a dialog is open, only its content can be selected.
  near.parentElement?.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
  near.focus()
}

const preClass = 'max-h-112 overflow-auto px-3 py-2 font-mono text-xs leading-5 wrap-anywhere whitespace-pre-wrap'

/** A block of text with a button that copies it. Lines that are too long for it go on below. */
export function Code({ text, label }: { text: string; label?: string }) {
  return (
    <figure className="overflow-hidden rounded-lg border border-line bg-sunk">
      <figcaption className="flex items-center justify-between gap-2 border-b border-line px-3 py-1.5 text-soft">
        <span>{label}</span>
        <CopyButton text={text} {...(label === undefined ? {} : { subject: label })} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className={preClass} tabIndex={0}>
        {text}
      </pre>
    </figure>
  )
}

/** A secret or link with a button that copies it. */
export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div className="flex flex-col gap-2">
      <p className="text-soft">{label}</p>
      <div className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 flex-1 rounded-lg border border-line bg-sunk px-3 py-2 font-mono text-xs break-all">
          {text}
        </code>
        <CopyButton text={text} subject="secret" />
      </div>
    </div>
  )
}
