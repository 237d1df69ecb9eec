import { useSyncExternalStore } from 'react'

type Theme = 'light' | 'dark' | 'system'

const themes: [Theme, string][] = [
  ['light', 'Light'],
  ['dark', 'Dark'],
  ['system', 'System'],
]

export function ThemeSwitch() {
  const selected = useTheme()
  return (
    <fieldset className="flex rounded-lg border border-line bg-sunk p-0.5">
      <legend className="sr-only">Theme</legend>
      {themes.map(([theme, label]) => (
        <button
          key={theme}
          type="button"
          aria-pressed={selected === theme}
          onClick={() => setTheme(theme)}
          className="flex-1 rounded-md px-2 py-1 text-xs text-soft aria-pressed:bg-panel aria-pressed:font-medium aria-pressed:text-ink aria-pressed:shadow-xs"
        >
          {label}
        </button>
      ))}
    </fieldset>
  )
}

const storageKey = 'assay-theme'
const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

const readTheme = (): Theme => {
  const stored = localStorage.getItem(storageKey)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

/** Shows the stored theme on the page. public/theme.js does the same before the first paint. */
function applyTheme() {
  const theme = readTheme()
  const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
  for (const listener of listeners) listener()
}

prefersDark.addEventListener('change', applyTheme)

function setTheme(theme: Theme) {
  localStorage.setItem(storageKey, theme)
  applyTheme()
}

const useTheme = () =>
  useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, readTheme)
