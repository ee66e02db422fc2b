/** Configs whose parts have sections of their own, such as `text_config` and `vision_config`. */
import * as z from 'zod';
import { isRecord } from '../../../../base/values.js';
import type { KeyRemark } from '../../family.js';
import type { HarmlessKeys, JsonObject } from '../config-keys.js';
import { huggingFaceReader, type Special } from '../hugging-face.js';

interface Part {
  /** Sections with its keys; later ones override earlier ones, as in old files of CLIP. */
  readonly keys: readonly string[];
  readonly shape: z.ZodRawShape;
  readonly harmless: HarmlessKeys;
}

/** Settings and reader of parts. @param parts By the name of their setting. */
export function partsReading(parts: Readonly<Record<string, Part>>): {
  readonly shape: z.ZodRawShape;
  readonly special: Special;
} {
  const entries = Object.entries(parts).map(([name, part]) => {
    const model = z.strictObject(part.shape);
    return { name, part, model, reader: huggingFaceReader(model, { harmless: part.harmless }) };
  });
  const sectionOf = (config: JsonObject, { keys }: Part): JsonObject =>
    Object.assign({}, ...keys.map((key) => (isRecord(config[key]) ? config[key] : {})));
  return {
    shape: Object.fromEntries(
      entries.map(({ name, model }) => [
        name,
        model.prefault({}).describe(`Sizes of the part for ${name}`),
      ]),
    ),
    special: {
      reads: entries.flatMap(({ part }) => part.keys),
      more: (config) =>
        Object.fromEntries(
          entries.map(({ name, part, reader }) => [
            name,
            withoutDtype(reader.read(sectionOf(config, part)).settings),
          ]),
        ),
      remarks: (config) => [
        ...withoutParts(config, Object.values(parts)),
        ...entries.flatMap(({ part, reader }) =>
          part.keys.flatMap((key) =>
            isRecord(config[key])
              ? reader
                  .read(config[key] as JsonObject)
                  .remarks.filter(({ path }) => path.length > 0)
                  .map((remark): KeyRemark => ({ ...remark, path: [key, ...remark.path] }))
              : [],
          ),
        ),
      ],
    },
  };
}

/** An error about a file without a section of any part, whose sizes would all be defaults. */
function withoutParts(config: JsonObject, parts: readonly Part[]): KeyRemark[] {
  if (parts.some(({ keys }) => keys.some((key) => isRecord(config[key])))) return [];
  const names = parts.flatMap(({ keys: [first = ''] }) => first);
  return [{ path: [], severity: 'error', why: `gives neither ${names.join(' nor ')}` }];
}

const withoutDtype = ({ torch_dtype: _, ...settings }: Record<string, unknown>) => settings;
