import sharp, { type Sharp } from 'sharp'

/** The sides of the pictures that hide, and of most that they are hidden in. */
export const side = 299

/** Harmless scenes that the models call clean, each with other colours. */
export function drawScene(seed: number, width = side, height = side): Sharp {
  const hue = (seed * 67) % 360
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 100 100" ` +
    `preserveAspectRatio="none"><defs><linearGradient id="g" x2="0.3" y2="1">` +
    `<stop stop-color="hsl(${(hue + 200) % 360},60%,70%)"/><stop offset="1" stop-color="hsl(${hue},40%,35%)"/>` +
    `</linearGradient></defs><rect width="100" height="100" fill="url(#g)"/>` +
    `<path d="M0 ${60 + (seed % 3) * 5} L30 ${35 + (seed % 5) * 4} L55 65 L80 40 L100 70 V100 H0 Z" fill="hsl(${hue + 90},35%,30%)"/>` +
    `<circle cx="${20 + (seed % 7) * 9}" cy="20" r="9" fill="#fff6c0"/><rect x="10" y="80" width="18" height="20" fill="#844"/></svg>`
  return sharp(Buffer.from(svg)).flatten().removeAlpha()
}

/** Draws what lies around a picture. */
export const surroundings: Record<string, (width: number) => Promise<Buffer>> = {
  'a gradient': (width) => drawSquare(width, '<rect width="100" height="100" fill="url(#g)"/>'),
  'two colours': (width) =>
    drawSquare(
      width,
      '<rect width="100" height="100" fill="#113"/><rect x="8" y="8" width="84" height="84" fill="#eda"/>',
    ),
  stripes: (width) =>
    drawSquare(
      width,
      `<rect width="100" height="100" fill="#fff"/>${Array.from({ length: 17 }, (_, i) => `<rect x="${i * 6}" width="3" height="100" fill="#39c"/>`).join('')}`,
    ),
  'another picture': (width) => drawScene(3, width, width).png().toBuffer(),
}

const drawSquare = (width: number, shapes: string): Promise<Buffer> =>
  sharp(
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${width}" viewBox="0 0 100 100">` +
        '<defs><linearGradient id="g" x2="0.4" y2="1"><stop stop-color="#d0e0ff"/><stop offset="1" stop-color="#204080"/>' +
        `</linearGradient></defs>${shapes}</svg>`,
    ),
  )
    .flatten()
    .png()
    .toBuffer()
