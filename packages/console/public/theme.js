// Sets the theme before the first paint, so that a dark page does not flash white.
const chosen = localStorage.getItem('assay-theme') ?? 'system'
const isDark = chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
