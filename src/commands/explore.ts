import { readFile } from 'node:fs/promises';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { endingOf } from '../base/files/file-endings.js';
import { builtThread } from '../base/files/file-system.js';
import { noteStandardInput } from '../base/files/input-registry.js';
import { readStreamAtMost, readText } from '../base/files/read-file.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { fitFlags } from '../cli/flags/fit-flags.js';
import { modelArgument, offline, readAs, savedFile, set } from '../cli/flags/flags.js';
import { hardwareFlags } from '../cli/flags/hardware-flags.js';
import { writeText } from '../cli/output.js';
import { parseDocument } from '../config/document.js';
import { correctedOverrides, splitOverride } from '../config/overrides.js';
import { MAX_DOCUMENT_BYTES } from '../config/source.js';
import { editedYaml } from '../config/syntax/yaml-edits.js';
import { clusterNamed } from '../estimate/hardware/cluster-named.js';
import {
  type ExploredModel,
  type ExplorerSetting,
  type ExplorerState,
  fileName,
} from '../explorer/explorer-state.js';
import { locateModel, readPresetFile } from '../input/model-input/locate.js';
import { modelOf } from '../input/model-input/model-file.js';
import { readConfig } from '../input/model-input/read-model-file.js';
import type { ExploreResult } from '../report/command-results.js';
import { exploreReport } from '../report/explore-report.js';

const { batch, context, users, dtype, ...otherFit } = fitFlags;
const { gpu, gpus } = hardwareFlags;

export default class Explore extends BaseCommand {
  static override summary = 'Edit a model in the browser, with live figures.';
  static override description =
    'Opens a page in which the counts and estimates of minimind run: the config as a form and as YAML with the messages ' +
    'of validate, sliders, parameters, memory against context, whether it fits, users, speed, training, and two models ' +
    'side by side. The page is served to this machine only until Ctrl-C, or saved as one file with --save or -o ' +
    'page.html. It sends no request. Its figures are those of profile and fit.';
  static override notesFirst = true;
  static override readsHub = 'config' as const;
  static override textEndings = ['.html', '.htm'];
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small --save page.html',
    '<%= config.bin %> <%= command.id %> llama3.1:8b --gpu rtx-4090 --dtype int4 --save llama.html',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --against hybrid/original -o two.html',
  ];

  static override args = { file: modelArgument() };
  static override flags = {
    set,
    family: readAs,
    offline,
    against: Flags.string({ helpValue: 'MODEL', description: 'a second model to compare with' }),
    save: savedFile({ description: 'write the page to FILE', example: 'page.html' }),
    'no-open': Flags.boolean({ description: 'print the address without opening it' }),
    context,
    batch,
    users,
    dtype,
    'cache-dtype': otherFit['cache-dtype'],
    gpu,
    gpus,
    'micro-batch': otherFit['micro-batch'],
    'train-tokens': otherFit['train-tokens'],
  };

  async run() {
    const { args, flags } = await this.parse(Explore);
    const { save = pageOf(flags.output) } = flags;
    await this.refuseUnwritable({ ...flags, output: undefined, save });
    const model = await this.modelGiven(flags, args.file, 'minimind2-small');
    const first = await exploredModel(model, flags);
    const second = flags.against === undefined ? undefined : await exploredModel(flags.against, {});
    const state: ExplorerState = {
      models: second === undefined ? [first] : [first, second],
      edited: 0,
      setting: this.#setting(flags),
    };
    const { filledPage } = await import('../explorer/filled-page.js');
    const template = await readFile(builtThread('dist/explorer.html'), 'utf8');
    const page = await filledPage(template, state);
    const result: ExploreResult = {
      schema: 'minimind/explore@1',
      model: first.name,
      against: second?.name ?? null,
      file: save ?? null,
      url: null,
      bytes: Buffer.byteLength(page),
    };
    if (save === undefined) return this.#serve(page, flags, result);
    await writeText(save, page, flags.force);
    return this.answer(answerFlags(flags), result, exploreReport);
  }

  /** Serves the page until Ctrl-C. */
  async #serve(page: string, flags: FlagsOf<typeof Explore>, result: ExploreResult) {
    const { servePage } = await import('../cli/explore/page-server.js');
    const { openBrowser } = await import('../cli/explore/open-browser.js');
    const server = await servePage(page);
    const served: ExploreResult = { ...result, url: server.url };
    await this.answer(flags, served, exploreReport);
    if (!flags['no-open']) openBrowser(server.url);
    // Nothing has to be removed, so Ctrl-C ends the program by itself.
    return server.ended;
  }

  #setting(flags: FlagsOf<typeof Explore>): ExplorerSetting {
    const named = flags.gpu === undefined ? undefined : this.#hardware(flags.gpu, flags);
    const setting = {
      ...named,
      ...{ context: flags.context, batch: flags.batch, users: flags.users, dtype: flags.dtype },
      cacheDtype: flags['cache-dtype'],
      gpus: flags.gpus ?? named?.gpus,
      microBatch: flags['micro-batch'],
      trainTokens: flags['train-tokens'],
    };
    const given = Object.entries(setting).filter(([, value]) => value !== undefined);
    return Object.fromEntries(given) as ExplorerSetting;
  }

  /** The name of the hardware as the page lists it. */
  #hardware(text: string, flags: FlagsOf<typeof Explore>) {
    const known = { gpus: [], machines: [] };
    const cluster = clusterNamed(text, flags.gpus, known, (choice) => this.note(flags, choice));
    if (cluster.cards !== undefined) {
      throw usageError('--gpu: the page shows one kind of GPU, found several', 'name one of them');
    }
    const isMachine = cluster.machine !== undefined;
    const name = cluster.machine ?? cluster.gpu.name;
    return { gpu: name, gpus: isMachine || cluster.gpus === 1 ? undefined : cluster.gpus };
  }
}

const pageOf = (output: string | undefined): string | undefined =>
  output !== undefined && /^\.html?$/.test(endingOf(output)) ? output : undefined;

/** Flags of the short answer that is printed when `--output` names the page: its ending is not the format of that answer. */
const answerFlags = <
  Given extends { readonly output?: string | undefined; readonly format?: string | undefined },
>(
  flags: Given,
): Given =>
  pageOf(flags.output) === undefined ? flags : { ...flags, output: undefined, format: 'table' };

interface Overrides {
  readonly set?: readonly string[] | undefined;
  readonly family?: string | undefined;
}

/** The text of a model, with overrides. A config with mistakes can be explored too, unless it has overrides. */
async function exploredModel(
  reference: string,
  { set = [], family }: Overrides,
): Promise<ExploredModel> {
  const model = await readModel(reference);
  if (set.length === 0 && family === undefined) return model;
  const document = parseDocument(model.text, model.name);
  const loaded = await modelOf(document, { set, family });
  const isFlat = document.value.model === undefined;
  let { text } = model;
  for (const override of correctedOverrides(loaded.family.schema, set)) {
    const parts = splitOverride(override);
    if ('mistake' in parts) continue;
    const { v: value } = parseDocument(`v: ${parts.value}`, override).value;
    const path = isFlat ? parts.path.slice(1) : parts.path;
    text = editedYaml(text, { path, value }) ?? text;
  }
  if (family !== undefined && !isFlat) {
    text = editedYaml(text, { path: ['model', 'family'], value: family }) ?? text;
  }
  return { name: fileName(model.name), text };
}

/** @throws UserError as `readConfig`, and for a checkpoint without a config. */
async function readModel(reference: string): Promise<ExploredModel> {
  const place = locateModel(reference);
  const suggestion = 'name a config: a short YAML or JSON file';
  const limit = { most: MAX_DOCUMENT_BYTES, suggestion };
  if (place.kind === 'preset') {
    const { preset: name, text } = readPresetFile(place.preset);
    return { name, text };
  }
  if (place.kind === 'stdin') {
    noteStandardInput();
    const bytes = await readStreamAtMost(process.stdin, MAX_DOCUMENT_BYTES);
    return { name: 'model.yaml', text: new TextDecoder().decode(bytes) };
  }
  if (place.kind === 'checkpoint' && place.config === place.path) {
    throw usageError(
      `expected a config, found the checkpoint ${reference} without one`,
      'name its config.json or YAML file',
    );
  }
  // Refuses what is missing, too large or not text, with the advice of all commands.
  if (place.kind === 'missing') await readConfig(place);
  return { name: place.config, text: await readText(place.config, limit) };
}
