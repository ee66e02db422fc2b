// The rows of benchmarks as text.

const rounded = (value) => (value < 10 ? value.toPrecision(3) : value.toFixed(0));

/** Figures of a row: its minimum and its median, or one figure. */
function figuresOf({ ratios, value, unit }) {
  if (ratios === undefined) return [`${rounded(value)} ${unit}`, ''];
  return [`${rounded(ratios.minimum)} ×`, `${rounded(ratios.median)} ×`];
}

/** Medians of both sides, of rows that are ratios. */
function mediansOf({ milliseconds, tokensPerSecond }) {
  if (milliseconds === undefined) return ['', ''];
  const [unit, { candidate, baseline }] = tokensPerSecond
    ? ['tokens/s', tokensPerSecond.median]
    : ['ms', milliseconds.median];
  return [candidate, baseline].map((value) => `${rounded(value)} ${unit}`);
}

/** A table of the rows, with what each is to meet. */
export function tableOf(rows) {
  const cells = rows.map((row) => [
    row.benchmark,
    row.name,
    ...figuresOf(row),
    row.aim === undefined ? '' : `≤ ${rounded(row.aim)}`,
    row.aim === undefined ? '' : row.met ? 'met' : 'missed',
    ...mediansOf(row),
  ]);
  return aligned(['', '', 'minimum', 'median', 'aim', '', 'ours', 'baseline'], cells);
}

/** Columns of text: the first two to the left, the others to the right. */
export function aligned(head, cells) {
  const widths = head.map((title, at) =>
    Math.max(...[title, ...cells.map((each) => each[at])].map(({ length }) => length)),
  );
  return [head, ...cells]
    .map((each) =>
      each
        .map((cell, at) => (at < 2 ? cell.padEnd(widths[at]) : cell.padStart(widths[at])))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
