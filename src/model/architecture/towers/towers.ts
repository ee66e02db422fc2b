/**
 * The parts of a multimodal model beside its language model, from the whole `config.json`. Names, shapes and defaults are
 * those of the classes of transformers 5.18.
 */
import * as z from 'zod';
import { asNumber, asText, isRecord } from '../../../base/values.js';
import { linear } from '../constructors/basic-layers.js';
import type { KeyRemark } from '../family.js';
import type { Component, Layer } from '../layer.js';
import { MAX_LAYERS, type Param } from '../param.js';
import type { HarmlessKeys, JsonObject } from '../transformer/config-keys.js';
import { ENCODER_VALUES } from '../transformer/described/define-encoder.js';
import { huggingFaceReader } from '../transformer/hugging-face.js';
import { tensorsOf } from '../walk.js';
import { PATCH_KEYS, PROJECTORS, type Projector, sizeOrDefault, wrongKey } from './projectors.js';
import type { Tower } from './tower.js';
import { TOWERS, type TowerKind } from './tower-kinds.js';

/** A part beside a language model. */
export interface PartBeside {
  /** Section of the config: `vision_config`. */
  readonly section: string;
  readonly component: Extract<Component, 'visionTower' | 'audioTower' | 'projector'>;
  readonly tensors: readonly Param[];
}

/** The parts beside a language model, or why they are not described. */
export type PartsBeside =
  | {
      readonly sections: readonly string[];
      readonly remarks: readonly KeyRemark[];
      /** @param hidden Width of the language model. */
      of(hidden: number): readonly PartBeside[];
    }
  | { readonly problem: string };

interface Around {
  readonly section: 'vision_config' | 'audio_config';
  /** Kind of a tower without a name. */
  readonly kind: TowerKind;
  /** Whether the class reads no other kind, and not the name, either. */
  readonly isFixed?: boolean;
  /** Whether a class without its section has no such tower. */
  readonly isOptional?: boolean;
  readonly prefix: string;
  readonly projector?: Projector;
}

const images = (
  kind: TowerKind,
  prefix: string,
  more: Partial<Omit<Around, 'section' | 'kind' | 'prefix'>> = {},
): Around => ({ section: 'vision_config', kind, prefix, ...more });

const sounds = (
  kind: TowerKind,
  more: Partial<Omit<Around, 'section' | 'kind' | 'prefix'>> = {},
): Around => ({ section: 'audio_config', kind, prefix: 'model.audio_tower.', ...more });

const TOWER = 'model.vision_tower.';
const own = { isFixed: true } as const;

/** Classes with towers that are described. */
const WHOLES: Readonly<Record<string, Around | readonly Around[]>> = {
  llava: images('clip_vision_model', TOWER, { projector: PROJECTORS.llava }),
  llava_next: images('clip_vision_model', TOWER, {
    projector: PROJECTORS.llavaNext,
  }),
  llava_next_video: images('clip_vision_model', TOWER, {
    projector: PROJECTORS.llavaNext,
  }),
  vipllava: images('clip_vision_model', TOWER, { projector: PROJECTORS.vipLlava }),
  video_llava: [
    images('clip_vision_model', 'model.video_tower.'),
    images('clip_vision_model', 'model.image_tower.', { projector: PROJECTORS.llava }),
  ],
  llava_onevision: images('siglip_vision_model', TOWER, {
    projector: PROJECTORS.llavaNext,
  }),
  gemma3: images('siglip_vision_model', TOWER, { ...own, projector: PROJECTORS.gemma3 }),
  paligemma: images('siglip_vision_model', TOWER, {
    projector: PROJECTORS.paligemma,
  }),
  mistral3: images('pixtral', TOWER, { projector: PROJECTORS.mistral3 }),
  idefics3: images('idefics3_vision', 'model.vision_model.', {
    ...own,
    projector: PROJECTORS.idefics3,
  }),
  smolvlm: images('idefics3_vision', 'model.vision_model.', {
    ...own,
    projector: PROJECTORS.idefics3,
  }),
  internvl: images('internvl_vision', TOWER, { projector: PROJECTORS.internvl }),
  qwen2_vl: images('qwen2_vl_vision', 'model.visual.', own),
  qwen2_5_vl: images('qwen2_5_vl_vision', 'model.visual.', own),
  qwen3_vl: images('qwen3_vl_vision', 'model.visual.', own),
  qwen3_vl_moe: images('qwen3_vl_vision', 'model.visual.', own),
  cosmos3_omni: images('qwen3_vl_vision', 'model.visual.', own),
  hyperclovax_vision_v2: images('qwen2_5_vl_vision', 'model.vision_model.', {
    projector: PROJECTORS.hyperclova,
  }),
  qwen3_5: images('qwen3_5_vision', 'model.visual.', own),
  qwen3_5_moe: images('qwen3_5_vision', 'model.visual.', own),
  glm4v: images('glm4v_vision', 'model.visual.', own),
  glm46v: images('glm4v_vision', 'model.visual.', own),
  glmga: images('glm4v_vision', 'model.visual.', own),
  glm4v_moe: images('glm4v_moe_vision', 'model.visual.', own),
  llama4: images('llama4_vision_model', 'vision_model.', own),
  mllama: images('mllama_vision_model', 'model.vision_model.', own),
  kimi_k25: images('kimi_k25_vision', TOWER, { ...own, projector: PROJECTORS.kimi }),
  lfm2_vl: images('siglip2_vision_model', TOWER, { projector: PROJECTORS.lfm2Vl }),
  aya_vision: images('siglip_vision_model', TOWER, { projector: PROJECTORS.ayaVision }),
  cohere2_vision: images('siglip_vision_model', TOWER, { projector: PROJECTORS.cohere2Vision }),
  lighton_ocr: images('pixtral', 'model.vision_encoder.', { projector: PROJECTORS.lightOn }),
  gemma4: [
    images('gemma4_vision', TOWER, { isOptional: true }),
    sounds('gemma4_audio', { isOptional: true }),
  ],
  qwen2_audio: sounds('qwen2_audio_encoder', { projector: PROJECTORS.qwen2Audio }),
  voxtral: sounds('voxtral_encoder'),
  audioflamingo3: sounds('audioflamingo3_encoder', { projector: PROJECTORS.audioFlamingo }),
  musicflamingo: sounds('audioflamingo3_encoder', { projector: PROJECTORS.audioFlamingo }),
};

const aroundOf = ({ model_type: kind }: JsonObject): readonly Around[] =>
  Object.hasOwn(WHOLES, asText(kind)) ? [WHOLES[asText(kind)] ?? []].flat() : [];

/** Section of the tower of a whole model that its config lacks: its class then has one with sizes by default. */
export const missingTower = (whole: JsonObject): string | undefined =>
  aroundOf(whole).find(({ section, isOptional }) => !isOptional && !isRecord(whole[section]))
    ?.section;

/** Names of the same towers. */
const SAME: Readonly<Record<string, TowerKind>> = {
  smolvlm_vision: 'idefics3_vision',
  idefics3: 'idefics3_vision',
};

/**
 * The parts beside the language model of a whole config; undefined for a class whose towers are not described, and for a
 * file without their section.
 */
export function partsBeside(whole: JsonObject): PartsBeside | undefined {
  if (whole.model_type === 'fuyu') return imagePatches(whole);
  // A file of the language model alone can have the name of the whole.
  const around = aroundOf(whole).filter(({ section }) => isRecord(whole[section]));
  if (around.length === 0) return undefined;
  const wrong = wrongKey(whole);
  if (wrong !== undefined) return { problem: wrong };
  const towers = around.map((each) => towerIn(whole, each));
  const problem = towers.find((each) => 'problem' in each);
  if (problem !== undefined) return problem;
  const found = towers.flatMap((each) => ('problem' in each ? [] : [each]));
  return {
    sections: around.map(({ section }) => section),
    remarks: found.flatMap(({ remarks }) => remarks),
    of: (hidden) => found.flatMap((each) => each.of(hidden)),
  };
}

/**
 * Projection of Fuyu in place of a tower: one product that makes an embedding of each patch of an image.
 * transformers models/fuyu/modeling_fuyu.py, `vision_embed_tokens`
 */
function imagePatches(whole: JsonObject): PartsBeside {
  const { patch_size, num_channels, hidden_size } = whole;
  const wrong = wrongKey(whole, PATCH_KEYS);
  if (wrong !== undefined) return { problem: wrong };
  const values = sizeOrDefault(patch_size, 30) ** 2 * sizeOrDefault(num_channels, 3);
  // The width of the whole, which its class does not compare with that of the text part.
  const hidden = sizeOrDefault(hidden_size, 4096);
  return {
    sections: ['patch_size'],
    remarks: [],
    of: () => [
      part('patch_size', 'projector', [
        linear('model.vision_embed_tokens', values, hidden, { bias: true }),
      ]),
    ],
  };
}

/** A tower with its projector, or why it is not described. */
function towerIn(whole: JsonObject, around: Around): PartsBeside {
  const given = whole[around.section];
  const section = isRecord(given) ? given : {};
  const kind = kindOf(around, section);
  if (kind === undefined) {
    return { problem: `its kind ${JSON.stringify(section.model_type)} is not described` };
  }
  const tower: Tower = TOWERS[kind];
  const read = readTower(tower, section, around.section);
  if ('problem' in read) return read;
  return {
    sections: [around.section],
    remarks: read.remarks,
    of(hidden) {
      const built = tower.build(around.prefix, read.settings, hidden);
      const projected = [
        ...(built.projector ?? []),
        ...(around.projector?.({ whole, hidden, width: built.width }) ?? []),
      ];
      return [
        part(around.section, tower.component, built.layers),
        ...(projected.length > 0 ? [part(around.section, 'projector', projected)] : []),
      ];
    },
  };
}

const part = (
  section: string,
  component: PartBeside['component'],
  layers: readonly Layer[],
): PartBeside => ({ section, component, tensors: layers.flatMap(tensorsOf) });

function kindOf({ kind, isFixed }: Around, { model_type: named }: JsonObject) {
  if (isFixed || named == null) return kind;
  const name = asText(named);
  if (Object.hasOwn(SAME, name)) return SAME[name];
  return Object.hasOwn(TOWERS, name) ? (name as TowerKind) : undefined;
}

/** Keys of the number of blocks. */
const DEPTHS = ['num_hidden_layers', 'num_global_layers', 'depth', 'encoder_layers'];

/** Settings of a tower with the defaults of its class. */
function readTower(
  { shape, harmless, names = {} }: Tower,
  section: JsonObject,
  key: string,
):
  | { readonly problem: string }
  | { readonly settings: Readonly<Record<string, never>>; readonly remarks: readonly KeyRemark[] } {
  const model = z.strictObject(shape);
  const all: HarmlessKeys = { ...ENCODER_VALUES, ...harmless };
  const { settings, remarks } = huggingFaceReader(model, { harmless: all, names }).read(section);
  const { torch_dtype: _, ...sizes } = settings;
  const deepest = DEPTHS.find((name) => asNumber(sizes[name]) > MAX_LAYERS);
  if (deepest) return { problem: `${key}.${deepest} is more than ${MAX_LAYERS} layers` };
  const found = model.safeParse(sizes);
  if (!found.success) {
    const [issue] = found.error.issues;
    return { problem: `${[key, ...(issue?.path ?? [])].join('.')}: ${issue?.message}` };
  }
  return {
    settings: found.data as Readonly<Record<string, never>>,
    remarks: remarks
      .filter(({ path }) => path.length > 0)
      .map((remark) => ({ ...remark, severity: 'warning', path: [key, ...remark.path] })),
  };
}
