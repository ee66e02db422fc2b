/** Pictures of `minimind convert-checkpoint`: where the errors are. */
import { present } from '../../base/text/words.js';
import type { ConversionResult } from '../../convert/conversion/conversion-result.js';
import { layerMap } from '../kit/layer-map.js';
import type { BarsPicture, Picture } from '../kit/pictures.js';
import { layerErrors } from './convert-plan.js';

export function conversionPictures({ srte, quantization }: ConversionResult): Picture[] {
  const weights = (quantization?.errors ?? []).map(({ name, relativeError }) => ({
    name,
    value: relativeError,
  }));
  return present([
    layerMap('Relative error of the quantized weights by layer', 'share', weights),
    srte && srteBars(srte),
  ]);
}

function srteBars(srte: NonNullable<ConversionResult['srte']>): BarsPicture | null {
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
