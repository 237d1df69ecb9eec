/** `503 12x, none 3x` */
export const toText = (counts: Map<string, number>) =>
  [...counts].map(([what, count]) => `${what} ${count}x`).join(', ') || 'none'
