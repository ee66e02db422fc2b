/** Tensors that quantized checkpoints keep beside a weight, or in its place. */

/** Names of one kind of tensor. */
const named = (what: string, leaves: readonly string[]): Record<string, string> =>
  Object.fromEntries(leaves.map((leaf) => [leaf, what]));

/** How weights are quantized, by the leaf of a tensor that only such files have. */
const SCHEMES: Readonly<Record<string, string>> = {
  weight_scale_inv: 'scales of 8-bit floating-point weights',
  ...named('scales of quantized weights', [
    'weight_scale',
    'weight_scales',
    'weight_scale_2',
    'weight_global_scale',
  ]),
  ...named('scales of the inputs of quantized weights', [
    'input_scale',
    'input_scale_ub',
    'input_global_scale',
    'activation_scale',
  ]),
  ...named('scales of a quantized key-value cache', ['k_scale', 'v_scale']),
  SCB: 'scales of 8-bit integer weights (bitsandbytes)',
  weight_format: 'layout of 8-bit integer weights (bitsandbytes)',
  ...named('scales of 4-bit weights (bitsandbytes)', ['absmax', 'nested_absmax']),
  ...named('code table of 4-bit weights (bitsandbytes)', ['quant_map', 'nested_quant_map']),
  ...named('description of 4-bit weights (bitsandbytes)', [
    'bitsandbytes__nf4',
    'bitsandbytes__fp4',
  ]),
  qweight: 'packed weights of GPTQ or AWQ',
  qzeros: 'zero points of GPTQ or AWQ',
  scales: 'scales of GPTQ or AWQ',
  g_idx: 'groups of GPTQ',
  weight_packed: 'packed weights of compressed-tensors',
  weight_shape: 'shape of packed weights of compressed-tensors',
  weight_g_idx: 'groups of compressed-tensors',
  ...named('zero points of compressed-tensors', ['weight_zero_point', 'input_zero_point']),
  _weight_qdata: 'quantized weights of torchao',
  _weight_scale: 'scales of torchao',
  _weight_zero_point: 'zero points of torchao',
};

/** Endings of names that belong to no module of their own. */
const SUFFIXES: Readonly<Record<string, string>> = {
  _blocks: 'packed weights of MXFP4',
  _scales: 'scales of MXFP4',
};

/** What a tensor of a quantized checkpoint is, in words; undefined for any other. */
export function quantizedPart(name: string): string | undefined {
  const leaf = name.slice(name.lastIndexOf('.') + 1);
  if (Object.hasOwn(SCHEMES, leaf)) return SCHEMES[leaf];
  const suffix = Object.keys(SUFFIXES).find((each) => leaf.endsWith(each));
  return suffix && SUFFIXES[suffix];
}
