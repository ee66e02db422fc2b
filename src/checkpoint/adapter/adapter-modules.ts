/** Modules that the settings of a LoRA adapter choose, and their ranks: names and patterns of PEFT. */
import { ProcessorLimit, TimeLimit, TimeLimitExceeded } from '../../base/files/time-limit.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { quoted, refusal } from '../checkpoint-rules.js';
import { type AdapterConfig, replacedTest } from './adapter-config.js';

/** Milliseconds of processor time for all patterns of an adapter; published ones need a few. */
export const TIME_LIMIT = 1500;

/** Characters from which a pattern can take long to compile. */
const LONG = 300;

/** Characters of a pattern. Compiled, each takes up to 5 kB of memory; published patterns have a few hundred. */
const MOST_CHARACTERS = 32_768;

/** A name of modules, or the last parts of it. In a pattern, its dots match any character. */
const NAME = /^[\w-]+(?:\.[\w-]+)*$/;

/** peft/utils/constants.py: INCLUDE_LINEAR_LAYERS_SHORTHAND. */
const ALL_LINEAR = 'all-linear';

/** Whether a pattern matches each of a list of modules; undefined for a pattern that cannot be read. */
type Matches = readonly boolean[] | undefined;

/** Answers for the modules of one adapter. Each pattern is compiled once and matched with all of them. */
export class AdapterModules {
  readonly #config: AdapterConfig;
  readonly #index: ReadonlyMap<string, number>;
  readonly #ranks: readonly (number | undefined)[];
  readonly #alphas: readonly (number | undefined)[];
  readonly #targets: Matches;
  readonly #excluded: Matches;
  readonly #layers: readonly (number | 'none' | undefined)[];
  readonly #targetNames: ReadonlySet<string>;
  readonly #excludedNames: ReadonlySet<string>;
  readonly #isReplaced: (module: string) => boolean;

  /** All names that name a module in `target_modules`. */
  readonly names: ReadonlySet<string>;

  private constructor(config: AdapterConfig, modules: readonly string[], patterns: Patterns) {
    const { targets, excluded, rankPattern, alphaPattern } = config;
    this.#config = config;
    this.names = new Set(modules.flatMap((module) => [...endingsOf(module)]));
    this.#index = new Map(modules.map((module, index) => [module, index]));
    this.#ranks = patterns.values('rank_pattern', rankPattern);
    this.#alphas = patterns.values('alpha_pattern', alphaPattern);
    const isPattern = typeof targets === 'string' && targets !== ALL_LINEAR;
    this.#targets = isPattern ? patterns.whole(targets) : undefined;
    this.#excluded = typeof excluded === 'string' ? patterns.whole(excluded) : undefined;
    this.#layers = config.layers.length === 0 ? [] : patterns.layers(config.layerLists);
    this.#targetNames = new Set(typeof targets === 'string' ? [] : targets);
    this.#isReplaced = replacedTest(config);
    this.#excludedNames = new Set(typeof excluded === 'string' ? [] : excluded);
  }

  /**
   * @param modules Paths of all modules that can be queried later.
   * @throws UserError for a pattern of ranks that cannot be read, or for patterns that take too long.
   */
  static async of(config: AdapterConfig, modules: readonly string[]): Promise<AdapterModules> {
    const { targets, excluded, rankPattern, alphaPattern, layerLists } = config;
    const all = [targets, excluded, ...rankPattern.keys(), ...alphaPattern.keys(), ...layerLists];
    const isPlain = all.every((each) => typeof each !== 'string' || NAME.test(each));
    const engine =
      isPlain && config.layers.length === 0 ? undefined : (await import('re2js')).RE2JS;
    return new AdapterModules(config, modules, new Patterns(config.file, modules, engine));
  }

  rankOf(module: string): number {
    return this.#ranks[this.#at(module)] ?? this.#config.rank;
  }

  alphaOf(module: string): number {
    return this.#alphas[this.#at(module)] ?? this.#config.alpha;
  }

  /**
   * Whether PEFT gives a module factors: check_target_module_exists in peft/tuners/tuners_utils.py.
   * @returns Undefined when the settings leave it to PEFT, or have a pattern that cannot be read.
   */
  isTarget(module: string): boolean | undefined {
    const { targets, excluded, layers } = this.#config;
    const at = this.#at(module);
    const isOut =
      typeof excluded === 'string'
        ? excluded !== '' && this.#excluded?.[at]
        : isNamed(this.#excludedNames, module);
    if (isOut || this.#isReplaced(module)) return false;
    if (isOut === undefined || targets === null || targets === ALL_LINEAR) return undefined;
    if (typeof targets === 'string') return this.#targets?.[at];
    if (this.#targetNames.has(module)) return true;
    if (!isNamed(this.#targetNames, module)) return false;
    if (layers.length === 0) return true;
    const layer = this.#layers[at];
    return layer === undefined ? undefined : layer !== 'none' && layers.includes(layer);
  }

  #at(module: string): number {
    return this.#index.get(module) ?? Number.NaN;
  }
}

/** Names of a module without its first parts: `model.q`, `q`. */
function* endingsOf(module: string): Generator<string> {
  yield module;
  for (let at = module.indexOf('.'); at >= 0; at = module.indexOf('.', at + 1)) {
    yield module.slice(at + 1);
  }
}

function isNamed(names: ReadonlySet<string>, module: string): boolean {
  if (names.size === 0) return false;
  for (const ending of endingsOf(module)) if (names.has(ending)) return true;
  return false;
}

type Engine = typeof import('re2js').RE2JS;

/** Patterns of Python, matched with all modules of an adapter in bounded time. */
class Patterns {
  readonly #file: string;
  readonly #modules: readonly string[];
  readonly #engine: Engine | undefined;
  readonly #limit = new ProcessorLimit(TIME_LIMIT);

  constructor(file: string, modules: readonly string[], engine: Engine | undefined) {
    this.#file = file;
    this.#modules = modules;
    this.#engine = engine;
  }

  /**
   * Value of the first pattern that matches the end of each module, as PEFT's get_pattern_key does.
   * @throws UserError for a pattern that cannot be read.
   */
  values(key: string, patterns: ReadonlyMap<string, number>): (number | undefined)[] {
    const listed = [...patterns];
    const names = new NamePatterns();
    const first = this.#modules.map(() => listed.length);
    for (const [order, [pattern]] of listed.entries()) {
      if (NAME.test(pattern)) {
        names.add(pattern, order);
        continue;
      }
      const matches = this.#matches(`^(?:.*\\.)?(?:${pattern})$`);
      if (matches === undefined) throw this.#unreadable(key, pattern);
      for (const [at, isMatch] of matches.entries()) {
        if (isMatch) first[at] = Math.min(first[at] ?? order, order);
      }
    }
    return this.#modules.map((module, at) => {
      this.#checkTime();
      return listed[Math.min(first[at] ?? listed.length, names.firstOf(module))]?.[1];
    });
  }

  /** Whether a pattern matches the whole path of each module. */
  whole(pattern: string): Matches {
    return this.#matches(`^(?:${pattern})$`);
  }

  /** Number of the layer of each module, after one of the lists of layers. Undefined after a list that cannot be read. */
  layers(lists: readonly string[]): (number | 'none' | undefined)[] {
    const found: (number | 'none' | undefined)[] = this.#modules.map(() => 'none');
    for (const list of lists.length === 0 ? ['[^.]*'] : lists) {
      const expression = this.#compiled(`^.*?\\.(?:${list})\\.(\\d+)\\.`);
      for (const [at, module] of this.#modules.entries()) {
        this.#checkTime();
        if (found[at] !== 'none') continue;
        const matcher = expression?.matcher(module);
        const [group, groups] = [matcher?.find(), matcher?.groupCount() ?? 0];
        if (matcher === undefined) found[at] = undefined;
        else if (group) found[at] = Number(matcher.group(groups));
      }
    }
    return found;
  }

  #matches(source: string): Matches {
    const expression = this.#compiled(source);
    if (expression === undefined) return this.#matchesOfBacktracking(source);
    return this.#modules.map((module) => {
      this.#checkTime();
      return expression.test(module);
    });
  }

  #compiled(source: string): InstanceType<Engine> | undefined {
    this.#checkTime();
    if (source.length > MOST_CHARACTERS) throw this.#tooLong(source.length);
    const compile = () => this.#engine?.compile(source);
    try {
      // The engine compiles in one call, which takes long for many groups in each other.
      return source.length < LONG ? compile() : new TimeLimit().run(this.#limit.left, compile);
    } catch (cause) {
      if (cause instanceof TimeLimitExceeded) throw this.#tooSlow();
      return undefined;
    }
  }

  /** Lookarounds and references need an engine that backtracks, which only a `vm` context can stop. */
  #matchesOfBacktracking(source: string): Matches {
    try {
      const expression = new RegExp(source);
      const work = () => this.#modules.map((module) => expression.test(module));
      return new TimeLimit().run(this.#limit.left, work);
    } catch (cause) {
      if (cause instanceof TimeLimitExceeded) throw this.#tooSlow();
      return undefined;
    }
  }

  #checkTime(): void {
    if (this.#limit.isExceeded()) throw this.#tooSlow();
  }

  #tooSlow() {
    const { length } = this.#modules;
    return this.#refused(
      `has patterns that take more than ${TIME_LIMIT / 1000} s for ${length} modules`,
      'write the names of the modules instead',
    );
  }

  #tooLong(length: number) {
    return this.#refused(
      `has a pattern of ${counted(length, 'character')}; expected at most ${formatInteger(MOST_CHARACTERS)}`,
      'write the names of the modules as a list instead',
    );
  }

  #unreadable(key: string, pattern: string) {
    return this.#refused(
      `has the pattern ${quoted(pattern)}; expected a regular expression of Python`,
      'write the name of the module instead',
      key,
    );
  }

  #refused(message: string, suggestion: string, place?: string) {
    return refusal(this.#file, { rule: 'adapter-expression', place, message, suggestion });
  }
}

/** Patterns that are names. They are looked up, because an adapter can have one for each of its modules. */
class NamePatterns {
  /** By length and places of dots, in which any character matches. */
  readonly #groups = new Map<string, { dots: readonly number[]; order: Map<string, number> }>();
  readonly #byLength = new Map<number, { dots: readonly number[]; order: Map<string, number> }[]>();

  add(pattern: string, order: number): void {
    const dots = [...pattern.matchAll(/\./g)].map(({ index }) => index);
    const key = `${pattern.length}:${dots}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { dots, order: new Map() };
      this.#groups.set(key, group);
      const others = this.#byLength.get(pattern.length) ?? [];
      this.#byLength.set(pattern.length, [...others, group]);
    }
    if (!group.order.has(pattern)) group.order.set(pattern, order);
  }

  /** Order of the first pattern that matches the end of a module; infinite for none. */
  firstOf(module: string): number {
    let first = Number.POSITIVE_INFINITY;
    if (this.#groups.size === 0) return first;
    for (const ending of endingsOf(module)) {
      for (const { dots, order } of this.#byLength.get(ending.length) ?? []) {
        first = Math.min(first, order.get(withDots(ending, dots)) ?? first);
      }
    }
    return first;
  }
}

function withDots(text: string, places: readonly number[]): string {
  let result = '';
  let from = 0;
  for (const place of places) {
    result += `${text.slice(from, place)}.`;
    from = place + 1;
  }
  return result + text.slice(from);
}
