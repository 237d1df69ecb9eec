import { type AdminRouteName, exportFormats } from '@assay/contract/admin'
import { type Input, toUrl } from '../api/call.ts'
import { buttonClass } from './button.tsx'

/** Links that download all rows of a list, with the filters of the page. */
export function ExportLinks<N extends AdminRouteName>({ list, input = {} }: { list: N; input?: Input<N> }) {
  const url = toUrl(list, input)
  return exportFormats.map((format) => (
    <a
      key={format}
      href={`${url}${url.includes('?') ? '&' : '?'}format=${format}`}
      download
      className={buttonClass('ghost')}
    >
      Export {format.toUpperCase()}
    </a>
  ))
}
