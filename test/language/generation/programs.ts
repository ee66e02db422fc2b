/** Programs without an engine, whose logits depend only on the last token. */
import type { Program, RunInput, RunOutput, StateHandle } from '../../../src/engine/engine.js';

/**
 * A program without `rewind`, like a recurrent model.
 * @param table Logits of the next token, by the last one.
 * @param calls Receives the position and the tokens of each call.
 */
export function tableProgram(
  table: readonly (readonly number[])[],
  calls: { readonly start: number; readonly ids: readonly number[] }[] = [],
): Program {
  const width = table[0]?.length ?? 0;
  return {
    elements: 0,
    weightBytes: 0,
    run: async ({ ids, state, lastTokens }: RunInput): Promise<RunOutput> => {
      const data = Array.from(ids?.data ?? []);
      calls.push({ start: state?.position ?? 0, ids: data });
      const position = (state?.position ?? 0) + data.length;
      const rows = data.slice(data.length - (lastTokens ?? data.length));
      const next: StateHandle = { position };
      return {
        output: {
          shape: [1, rows.length, width],
          data: Float32Array.from(rows.flatMap((id) => table[id] ?? [])),
        },
        blocks: new Map(),
        taps: new Map(),
        state: next,
      };
    },
    release: async () => {},
  };
}
