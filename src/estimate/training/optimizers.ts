/** Optimizers by their names in PyTorch, transformers and other programs. */
import type { Optimizer } from '../../model/budget/optimizers.js';

/** Letters and digits of a name: `torch.optim.AdamW` and `adamw_torch` become `adamw` and `adamwtorch`. */
const foldedOptimizerName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^.*\./, '')
    .replaceAll(/[^a-z0-9]/g, '');

/** Names of `OptimizerNames` in transformers (training_args.py), of torch.optim, of bitsandbytes and of apex. */
const NAMES: Readonly<Partial<Record<Optimizer, RegExp>>> = {
  'adamw-fused': /^(?:fusedadamw?|adamw(?:torch|apex|torchnpu)?fused)$/,
  adamw: /^(?:distributed)?adamw?(?:torch|hf|apex|xla|npu|anyprecision|32bit)*$/,
  'adamw-8bit': /^adamw?(?:torch|bnb)*8bit$|^adamwbnb$/,
  'paged-adamw': /^pagedadamw?(?:32bit)?$/,
  'paged-adamw-8bit': /^pagedadamw?8bit$/,
  lion: /^lion(?:32bit)?$/,
  'lion-8bit': /^(?:paged)?lion8bit$/,
  muon: /^muon$/,
  adafactor: /^adafactor$/,
  galore: /^galoreadamw(?:layerwise)?$/,
  'galore-8bit': /^galoreadamw8bit(?:layerwise)?$/,
  sgd: /^sgd$/,
};

/** The optimizer of a name; undefined for one whose state is not counted here. */
export function parseOptimizer(name: string): Optimizer | undefined {
  const found = Object.entries(NAMES).find(([, names]) => names.test(foldedOptimizerName(name)));
  return found?.[0] as Optimizer | undefined;
}
