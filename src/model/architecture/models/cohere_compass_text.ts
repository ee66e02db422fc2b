/**
 * Text model of North Micro Vision (Cohere Compass): Command R with windows where the config lists them, and rotary settings
 * for each kind of layer. Without scaling, the frequencies have another order, for positions in images.
 */

import * as z from 'zod';
import { isRecord } from '../../../base/values.js';
import { rotary } from '../constructors/attention-layers.js';
import { defineRules, type KeyRemark } from '../family.js';
import type { Rotary } from '../layer.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { rotaryOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import {
  localRotarySettings,
  nestedRotary,
  type RopeScaling,
  type RotaryReading,
} from '../transformer/rotary.js';
import { localRotaryRules } from '../transformer/rules.js';
import { headsOf, slidesAt, toggle, windowAt, windowSettings } from '../transformer/settings.js';
import { COHERE, COHERE_SIZES, cohereSettings } from './cohere.js';

const BASE = 10_000;

/** Frequencies for height, width and time. */
const SECTIONS = [22, 22, 20];

const sections = z.array(z.int().min(0)).length(3).default(SECTIONS);

const KINDS = ['full_attention', 'sliding_attention'] as const;

const usedBy = ({ layer_types: types }: JsonObject): readonly unknown[] =>
  Array.isArray(types) ? types : ['full_attention'];

const nested = nestedRotary({ rope_theta: BASE, rope_local_base_freq: BASE });

const ropesByKind = ({ rope_parameters: all }: JsonObject): JsonObject =>
  isRecord(all) ? all : {};

/** The settings that other families have, too; those outside the kinds are dropped where there are some inside. */
function usualIn(config: JsonObject): JsonObject {
  const kinds = KINDS.map((kind): [string, unknown] => {
    const own = ropesByKind(config)[kind];
    if (!isRecord(own)) return [kind, {}];
    const { mrope_section: _, mrope_interleaved: __, ...rest } = own;
    return [kind, rest];
  });
  return { rope_parameters: Object.fromEntries(kinds) as JsonObject };
}

const reading: RotaryReading = {
  keys: nested.keys,
  settings(config) {
    const [full, sliding] = KINDS.map((kind) => ropesByKind(config)[kind]);
    return {
      ...nested.settings(usualIn(config)),
      has_positions: full !== null,
      has_local_positions: sliding !== null,
      mrope_section: isRecord(full) ? full.mrope_section : undefined,
      local_mrope_section: isRecord(sliding) ? sliding.mrope_section : undefined,
    };
  },
  remarks(config) {
    const used = KINDS.filter((kind) => usedBy(config).includes(kind));
    const missing = used.flatMap((kind): KeyRemark[] => {
      const own = ropesByKind(config)[kind];
      const path = ['rope_parameters', kind];
      if (own === null) return [];
      if (!isRecord(own)) {
        return [
          { path, severity: 'error', why: 'the class needs the settings of each kind of layer' },
        ];
      }
      return own.rope_theta == null
        ? [{ path, severity: 'error', why: 'rope_theta is missing' }]
        : [];
    });
    return [...missing, ...nested.remarks(usualIn(config))];
  },
};

interface Sections {
  readonly mrope_section: readonly number[];
  readonly local_mrope_section: readonly number[];
  readonly layer_types?: readonly string[] | null | undefined;
  readonly has_positions: boolean;
  readonly has_local_positions: boolean;
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly head_dim?: number | null | undefined;
}

const sectionRules = defineRules<{ readonly model: Sections }>([
  {
    severity: 'error',
    reads: [
      'model.mrope_section',
      'model.local_mrope_section',
      'model.head_dim',
      'model.layer_types',
    ],
    check({ model }) {
      const half = headsOf(model).headDim / 2;
      const kinds = model.layer_types ?? ['full_attention'];
      const used = [
        ...(kinds.includes('full_attention') && model.has_positions ? [model.mrope_section] : []),
        ...(kinds.includes('sliding_attention') && model.has_local_positions
          ? [model.local_mrope_section]
          : []),
      ];
      const wrong = used.find((list) => {
        const [height = 0, width = 0, time = 0] = list;
        return height + width + time !== half || time === 0;
      });
      return wrong
        ? {
            message: `mrope_section ${wrong.join(', ')} is not ${half} frequencies, half of a head, some of them in the last part`,
            suggestion: 'write three numbers with that sum',
          }
        : undefined;
    },
  },
]);

/** All but the last part: the even ones, then the odd ones. */
function orderOf([height = 0, width = 0, time = 0]: readonly number[]): number[] {
  const turned = Array.from({ length: height + width }, (_, index) => index);
  return [
    ...turned.filter((index) => index % 2 === 0),
    ...turned.filter((index) => index % 2 === 1),
    ...Array.from({ length: time }, (_, index) => height + width + index),
  ];
}

interface RotaryConfig extends Sections {
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly rope_local_base_freq: number;
  readonly rope_local_scaling?: RopeScaling | null | undefined;
  readonly max_position_embeddings: number;
}

function rotaryFor(
  block: string,
  config: RotaryConfig,
  headDim: number,
  slides: boolean,
): Rotary | undefined {
  if (!(slides ? config.has_local_positions : config.has_positions)) return undefined;
  const [base, scaling, parts] = slides
    ? [config.rope_local_base_freq, config.rope_local_scaling, config.local_mrope_section]
    : [config.rope_theta, config.rope_scaling, config.mrope_section];
  if (scaling && scaling.rope_type !== 'default') {
    return rotaryOf(block, { ...config, rope_theta: base, rope_scaling: scaling }, headDim);
  }
  return rotary(`${block}.rotary`, {
    base,
    headDim,
    scaling: { kind: 'reordered', order: orderOf(parts) },
  });
}

export const cohereCompassText = defineDecoder({
  ...COHERE,
  title: 'North Micro Vision, the text model',
  schema: plainDecoderDocument(
    'cohere_compass_text',
    { ...COHERE_SIZES, rope_theta: BASE },
    {
      ...cohereSettings,
      logit_scale: z.number().nullable().default(null).describe('Factor of the logits; null: 1'),
      ...localRotarySettings(BASE),
      has_positions: toggle(true, 'Whether layers without a window rotate positions'),
      has_local_positions: toggle(true, 'Whether layers with a window do'),
      mrope_section: sections.describe(
        'Frequencies for height, width and time in layers without a window',
      ),
      local_mrope_section: sections.describe('The same in layers with a window'),
      ...windowSettings(4096),
    },
  ),
  rules: [...localRotaryRules, ...sectionRules],
  dimensions: null,
  ignoredOnLoad: [],
  huggingFace: {
    rotary: reading,
    limited: {
      ...unreadEach([
        'rope_scaling',
        'rope_theta',
        'rope_local_base_freq',
        'sliding_window_pattern',
      ]),
      ...unreadEach(['use_qk_norm'], [false]),
    },
    harmless: { pooling: 'of a class that classifies whole texts' },
  },
  rotaryPairs: 'halves',
  logitSteps: ({ logit_scale: factor }) => COHERE.logitSteps({ logit_scale: factor ?? 1 }),
  attention({ name, config, index, heads: { headDim } }) {
    const slides = slidesAt(config, index, false);
    return {
      rotary: rotaryFor(name, config, headDim, slides),
      window: windowAt(config, index, false),
    };
  },
});
