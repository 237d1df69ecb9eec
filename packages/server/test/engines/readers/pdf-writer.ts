type Stream = { dictionary: string; data: Buffer; length?: string; beforeEnd?: string }

/** A PDF with an attachment as its fifth object and other objects from the sixth on. */
export function writePdf({ dictionary, data, length, beforeEnd = '\n' }: Stream, ...more: string[]): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a) 4 0 R] >> >> >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] >>',
    '<< /Type /Filespec /F (a) /EF << /F 5 0 R >> >>',
    `<< /Type /EmbeddedFile ${dictionary} /Length ${length ?? data.length} >>\nstream\n${data.toString('latin1')}${beforeEnd}endstream`,
    ...more,
  ]
  const body = objects.map((object, n) => `${n + 1} 0 obj\n${object}\nendobj\n`).join('')
  return Buffer.from(`%PDF-1.7\n${body}trailer\n<< /Size 9 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n`, 'latin1')
}
