import { ELEMENT_TYPES, type ElementType, type GraphProto } from './proto.js';

const ELEMENT_BYTES = {
  f16: 2,
  bf16: 2,
  f32: 4,
  i32: 4,
  bool: 1,
  i64: 8,
  f64: 8,
} as const satisfies Record<ElementType, number>;

const TYPES_BY_NUMBER: ReadonlyMap<unknown, ElementType> = new Map(
  (Object.keys(ELEMENT_TYPES) as ElementType[]).map((type) => [ELEMENT_TYPES[type], type]),
);

/**
 * Bytes that the weights of a graph take where it is computed. A weight is held in each element type in which
 * something reads it: it is cast when the session is made, and what it was cast from is let go. With ONNX
 * Runtime 1.30 a weight of 115 MB took 110 MB of the WebGPU provider's memory in float32 and 56 MB in float16;
 * on the CPU, one of 256 MB took as much in either.
 * @param weights Names of the initializers that count.
 * @param hasFloat16 Whether what computes has products of float16. ONNX Runtime's CPU provider has none on
 * x64: it computes in float32 and rounds, and casts the weights back when the session is made.
 */
export function heldBytes(
  { nodes, initializers }: GraphProto,
  weights: ReadonlySet<string>,
  hasFloat16: boolean,
): number {
  const held = new Map([...weights].map((name) => [name, new Set<ElementType>()]));
  const known = new Map(
    initializers
      .filter(({ name }) => weights.has(name))
      .map(({ name, type }) => [name, { weight: name, type }] as const),
  );
  for (const { op, inputs, outputs, attributes } of nodes) {
    for (const { weight, type } of inputs.flatMap((each) => known.get(each) ?? [])) {
      const casted = op === 'Cast' ? TYPES_BY_NUMBER.get(attributes.to) : undefined;
      if (casted !== undefined) known.set(outputs[0] ?? '', { weight, type: casted });
      // Rows of a table are taken out of it as they are.
      else held.get(weight)?.add(hasFloat16 || type !== 'f16' || op === 'Gather' ? type : 'f32');
    }
  }
  return initializers.reduce((sum, { name, shape }) => {
    const elements = shape.reduce((product, size) => product * size, 1);
    const types = [...(held.get(name) ?? [])];
    return sum + elements * types.reduce((bytes, type) => bytes + ELEMENT_BYTES[type], 0);
  }, 0);
}
