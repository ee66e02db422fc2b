/** A value for each tensor as a map of layers and tensors. */
import type { HeatMapPicture } from './pictures.js';

interface NamedValue {
  readonly name: string;
  readonly value: number | null;
}

/** The first number among the parts of a name is that of its layer. */
const LAYER = /(?<=^|\.)(\d+)(?=\.|$)/;

/** Layers as rows, and the names without their number as columns. Null without a tensor in a layer. */
export function layerMap(
  title: string,
  unit: HeatMapPicture['unit'],
  values: readonly NamedValue[],
): HeatMapPicture | null {
  const columns = new Map<string, number>();
  const rows = new Map<string, (number | null)[]>();
  for (const { name, value } of values) {
    const [, layer] = LAYER.exec(name) ?? [];
    if (layer === undefined) continue;
    const tensor = name.replace(/^.*?(?<=^|\.)\d+\.?/, '').replace(/\.weight$/, '');
    const at = columns.get(tensor) ?? columns.size;
    columns.set(tensor, at);
    const row = rows.get(layer) ?? [];
    row[at] = value;
    rows.set(layer, row);
  }
  if (rows.size === 0) return null;
  const inOrder = [...rows].toSorted(([a], [b]) => Number(a) - Number(b));
  return {
    kind: 'heat map',
    title,
    ...(unit && { unit }),
    columns: [...columns.keys()],
    rows: inOrder.map(([layer, own]) => ({
      label: `layer ${layer}`,
      values: Array.from(columns.values(), (at) => own[at] ?? null),
    })),
  };
}
