import { useEffect, useState } from 'react'
import { Button } from '../../ui/button.tsx'

/** Hidden until it is asked for: nobody should see by accident what was scanned. It never leaves the browser for this. */
export function ImagePreview({ file }: { file: File }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url])
  if (url === undefined) {
    return <Button onClick={() => setUrl(URL.createObjectURL(file))}>Show the image</Button>
  }
  return (
    <div className="flex w-full flex-col items-start gap-2">
      <img
        src={url}
        alt={`The scanned file ${file.name}`}
        className="max-h-80 max-w-full rounded-lg border border-line"
      />
      <Button onClick={() => setUrl(undefined)}>Hide the image</Button>
    </div>
  )
}
