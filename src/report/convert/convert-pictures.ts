/** Pictures of `minimind convert-checkpoint`: where the errors are. */
import { present } from '../../base/values.js';
import type { ConversionResult } from '../../convert/conversion/conversion-result.js';
import { layerMap } from '../kit/layer-map.js';
import type { BarsPicture, LinePlotBlock, Picture } from '../kit/pictures.js';
import { layerErrors } from './convert-plan.js';

export function conversionPictures({ srte, quantization, gguf }: ConversionResult): Picture[] {
  const weights = (quantization?.errors ?? []).map(({ name, relativeError }) => ({
    name,
    value: relativeError,
  }));
  const blocks = (gguf?.errors ?? []).flatMap(({ byTensor }) =>
    byTensor.map(({ name, relativeError }) => ({ name, value: relativeError })),
  );
  return present([
    layerMap('Relative error of the quantized weights by layer', 'share', weights),
    layerMap('Relative error of the tensors in blocks by layer', 'share', blocks),
    ...(srte?.tables ?? []).map(singularValuesPlot),
    srte && srteBars(srte),
  ]);
}

/** Singular values of a table that became a pair: those that its rank keeps, and those that it leaves out. */
function singularValuesPlot({
  name,
  rank,
  singularValues,
}: ConvertedSrte['tables'][number]): LinePlotBlock | null {
  if (singularValues === null || rank === null) return null;
  const points = singularValues.map((value, index) => [index + 1, value] as const);
  const [kept, others] = [points.slice(0, rank), points.slice(rank)];
  return {
    kind: 'line plot',
    title: `Singular values of ${name}`,
    x: { title: 'number, largest first' },
    y: { scale: 'log', title: 'singular value' },
    curves: [
      { label: `kept by rank ${rank}`, tone: 'hue1' as const, points: kept },
      { label: 'left out', tone: 'hue2' as const, points: others },
    ].filter((curve) => curve.points.some(([, value]) => value > 0)),
  };
}

type ConvertedSrte = NonNullable<ConversionResult['srte']>;

function srteBars(srte: ConvertedSrte): BarsPicture | null {
  const errors = layerErrors(srte).filter(({ relativeError }) => relativeError !== null);
  if (errors.length === 0) return null;
  return {
    kind: 'bars',
    title: 'Relative error of the SRTE by layer',
    unit: 'share',
    bars: errors.map(({ layer, relativeError }) => ({
      label: `layer ${layer}`,
      value: relativeError ?? 0,
    })),
    levels: [],
  };
}
