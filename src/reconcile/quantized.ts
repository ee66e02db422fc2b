/** Tensors that quantized checkpoints keep beside a weight, or in its place. */

/** How weights are quantized, by the leaf of a tensor that only such files have. */
const SCHEMES: Readonly<Record<string, string>> = {
  weight_scale_inv: 'scales of 8-bit floating-point weights',
  weight_scale: 'scales of quantized weights',
  input_scale: 'scales of the inputs of quantized weights',
  SCB: 'scales of 8-bit integer weights (bitsandbytes)',
  weight_format: 'layout of 8-bit integer weights (bitsandbytes)',
  qweight: 'packed weights of GPTQ or AWQ',
  qzeros: 'zero points of GPTQ or AWQ',
  scales: 'scales of GPTQ or AWQ',
  g_idx: 'groups of GPTQ',
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
