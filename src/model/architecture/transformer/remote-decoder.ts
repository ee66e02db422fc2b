/**
 * Decoders that are Llama with other names, whose code is not in transformers but in the repositories of the models.
 * Their keys and names are read; the code is never run.
 */
import { attention } from '../constructors/attention-layers.js';
import { fusedProjection, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import type { Attention, Layer, Rotary } from '../layer.js';
import { causalModel, residualBlock, rotaryOf, separateMlp } from './decoder-parts.js';
import type { RopeScaling } from './rotary.js';
import { longestInput } from './rotary.js';
import { type ActivationWord, activationOf, headsOf } from './settings.js';

/** Settings by the names of Llama. */
export interface RemoteConfig {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number | null | undefined;
  readonly head_dim?: number | null | undefined;
  readonly max_position_embeddings: number;
  readonly rms_norm_eps: number;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly hidden_act: ActivationWord;
  readonly tie_word_embeddings: boolean;
}

/** Names of the parts; those of a block come after its own. */
export interface RemoteNames {
  readonly embedding: string;
  readonly blocks: string;
  readonly norm: string;
  readonly head: string;
  readonly attention: string;
  readonly norms: readonly [attention: string, feedForward: string];
  readonly feedForward: string;
  /** Names of gate, up and down. Default: those of Llama. */
  readonly network?: readonly [gate: string, up: string, down: string];
}

interface RemoteParts {
  readonly names: RemoteNames;
  readonly attention: (name: string, rotary: Rotary) => Attention;
  /** Key of the number of blocks, if not that of Llama. */
  readonly blocksKey?: string;
  /** Rotation, if not of whole heads by halves. */
  readonly rotation?: Parameters<typeof rotaryOf>[3];
  /** Network, if not one with three products. */
  readonly feedForward?: (name: string) => Layer;
}

/** x + attention(norm(x)), then x + feedForward(norm(x)), with a gate. */
export function remoteDecoder(config: RemoteConfig, { names, ...parts }: RemoteParts) {
  const { hidden_size: hidden, rms_norm_eps: eps } = config;
  const { headDim } = headsOf(config);
  const norm = (name: string) => rmsNormLayer(name, hidden, eps);
  return causalModel({
    paths: { embedding: names.embedding, blocks: names.blocks, head: names.head },
    vocabulary: config.vocab_size,
    hidden,
    positions: longestInput(config.max_position_embeddings, config.rope_scaling),
    tied: config.tie_word_embeddings,
    blocks: config.num_hidden_layers,
    blocksKey: parts.blocksKey ?? 'num_hidden_layers',
    norm: norm(names.norm),
    block: (name) =>
      residualBlock(name, {
        attention: [
          norm(`${name}.${names.norms[0]}`),
          parts.attention(
            `${name}.${names.attention}`,
            rotaryOf(name, config, headDim, parts.rotation),
          ),
        ],
        mlp: [
          norm(`${name}.${names.norms[1]}`),
          parts.feedForward?.(`${name}.${names.feedForward}`) ??
            separateMlp(`${name}.${names.feedForward}`, {
              hidden,
              inner: config.intermediate_size,
              activation: activationOf(config.hidden_act),
              ...(names.network && { leaves: names.network }),
            }),
        ],
      }),
  });
}

interface FusedParts {
  /** Names of the two products. */
  readonly leaves: readonly [inputs: string, output: string];
  readonly bias: boolean;
  readonly outBias: boolean;
  /** Whether the columns are grouped by key-value heads. */
  readonly isGrouped: boolean;
}

/** Queries, keys and values as one product, whose heads can be wider than the model. */
export function remoteFusedAttention(
  name: string,
  config: RemoteConfig,
  rotary: Rotary,
  { leaves, bias, outBias, isGrouped }: FusedParts,
): Attention {
  const { hidden, heads, keyValueHeads, headDim } = headsOf(config);
  const [queries, keys] = [heads * headDim, keyValueHeads * headDim];
  const product = linear(`${name}.${leaves[0]}`, hidden, queries + 2 * keys, { bias });
  return attention(name, {
    inputs: fusedProjection(product, [queries, keys, keys], isGrouped ? keyValueHeads : 1),
    out: linear(`${name}.${leaves[1]}`, queries, hidden, { bias: outBias }),
    heads,
    keyValueHeads,
    headDim,
    rotary,
  });
}
