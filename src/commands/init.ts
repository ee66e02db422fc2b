import fs from 'node:fs/promises';
import path from 'node:path';
import * as Args from '@oclif/core/args';
import { toJson } from '../base/text/escape.js';
import { shortCount } from '../base/text/units.js';
import { BaseCommand, type OutputFlags } from '../cli/base-command.js';
import { isInteractive, Questions } from '../cli/dialogue.js';
import { listFamilies } from '../cli/family-list.js';
import { savedConfig } from '../cli/flags/flags.js';
import { writeText } from '../cli/output.js';
import { parseLimit } from '../config/parse-number.js';
import { presetSettings, readPresetFile } from '../input/model-input/locate.js';
import { type FamilyName, loadFamily } from '../model/architecture/families.js';
import { jsonSchemaOf } from '../model/architecture/family.js';
import type { InitResult } from '../report/command-results.js';
import { initReport } from '../report/models.js';

const DEFAULT_PRESET = 'recommended';

/** A config to write. */
interface Written {
  readonly preset: string;
  readonly family: string;
  readonly text: string;
  /** Name of the file without its ending. */
  readonly name: string;
  /** Model of the config, for people. */
  readonly title: string;
}

export default class Init extends BaseCommand {
  static override summary = 'Write a commented config to start from.';
  static override description =
    'Writes PRESET.yaml, or the file of --save (- for standard output), and the JSON Schema that the config names for ' +
    'editors. minimind list shows the presets; the published files pretrain_optimized and pretrain_v1 are names of ' +
    'hybrid/recommended and hybrid/original. Without PRESET on a terminal, asks for the family, the preset and ' +
    'the number of parameters.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> tiny --save my-model.yaml',
    '<%= config.bin %> <%= command.id %> sincos --save -',
    '<%= config.bin %> <%= command.id %> pretrain_optimized --save -',
  ];

  static override args = {
    preset: Args.string({
      ignoreStdin: true,
      description: `a preset, as minimind list shows [default: ${DEFAULT_PRESET}]`,
    }),
  };

  static override writesUnasked = true;
  static override flags = {
    save: savedConfig({
      description: 'write the config to FILE, as in my-model.yaml [default: PRESET.yaml]',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Init);
    await this.refuseUnwritable(flags);
    if (args.preset !== undefined) await this.notePublishedFile(flags, args.preset);
    const isAsking = args.preset === undefined && flags.save !== '-' && isInteractive();
    const written = isAsking ? await this.#asked() : await this.#preset(args.preset);
    const { preset, family, text } = written;
    const reportWith =
      (isKept: boolean) => (each: Omit<Parameters<typeof initReport>[0], 'title' | 'isKept'>) =>
        initReport({ ...each, title: written.title, isKept });
    const file = flags.save ?? `${written.name}.yaml`;
    if (file === '-') {
      const result: InitResult = {
        schema: 'minimind/init@1',
        preset,
        family,
        file,
        schemaFile: null,
      };
      return this.answerBeside(text, flags, result, reportWith(false));
    }
    await writeText(file, text, flags.force);
    // A device such as /dev/null keeps no file to complete, and its folder is not the user's.
    const isKept = (await fs.stat(file)).isFile();
    const schemaFile = isKept ? await writeSchema(path.dirname(file), family, flags) : null;
    const result: InitResult = { schema: 'minimind/init@1', preset, family, file, schemaFile };
    return this.answer(flags, result, reportWith(isKept));
  }

  async #preset(name = DEFAULT_PRESET): Promise<Written> {
    const { preset, family, text } = readPresetFile(name);
    return { preset, family, text, name: preset.split('/').at(-1) ?? preset, title: preset };
  }

  /** The config that the user's answers describe. */
  async #asked(): Promise<Written> {
    const families = (await listFamilies()).filter(({ presets }) => presets.length > 0);
    const questions = new Questions();
    try {
      const family = await questions.choose(
        'Family',
        families.map((value) => ({ name: value.name, text: value.title, value })),
      );
      const preset = await questions.choose(
        'Preset',
        family.presets.map((value) => ({
          name: value.name,
          text: `${shortCount(value.parameters)}  ${value.title}`,
          value,
        })),
      );
      const size = await questions.value(
        `Parameters [${shortCount(preset.parameters)}, as the preset]`,
        (text) => parseLimit(text, 'count'),
        '26M',
      );
      const name = `${family.name}/${preset.name}`;
      return await (size === undefined
        ? this.#preset(name)
        : planned(family.name as FamilyName, preset.name, size));
    } finally {
      questions.close();
    }
  }
}

/** The best model with at most this number of parameters, and the vocabulary of a preset. */
async function planned(name: FamilyName, preset: string, size: number | bigint): Promise<Written> {
  const { planModels, rowDocument } = await import('../estimate/plan/plan-models.js');
  const family = await loadFamily(name);
  const { model } = presetSettings(name, preset);
  const vocabulary = model[family.dimensions?.vocabulary ?? ''];
  const plan = planModels(family, {
    vocabulary: typeof vocabulary === 'number' ? vocabulary : undefined,
    inference: { batch: 1, context: 2048, dtype: 'bf16' },
    maxParameters: size,
    align: 64,
    set: [],
    sort: 'balance',
    top: 1,
  });
  const parameters = shortCount(plan.rows[0]?.parameters.value ?? size);
  return {
    preset: `${name}/${preset}`,
    family: name,
    text: rowDocument(plan, 1),
    name: `${name}-${parameters}`,
    title: `${parameters} parameters, vocabulary of ${name}/${preset}`,
  };
}

/** Writes the schema that the config names. A different file of its name is kept, unless --force. */
async function writeSchema(
  folder: string,
  family: string,
  { force }: OutputFlags,
): Promise<string | null> {
  const file = path.join(folder, `${family}.schema.json`);
  const text = toJson(jsonSchemaOf(await loadFamily(family as FamilyName)));
  const kept = await fs.readFile(file, 'utf8').catch(() => undefined);
  if (kept === text) return file;
  if (kept !== undefined && !force) return null;
  await writeText(file, text, force);
  return file;
}
