const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * A horizontal bar, `share` (0 to 1; beyond that it is cut) of `width` terminal columns long, to the
 * nearest eighth of a column.
 */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share || 0)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}
