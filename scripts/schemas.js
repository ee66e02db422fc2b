// Writes docs/schemas: the JSON Schemas of the answers, from the types of the results and their docstrings. With --check it
// compares only. A result is an exported type with a tag: `@answer TITLE`, or `@title TITLE` where the base class of the
// commands adds nothing to it. Each field needs a docstring, its own or that of its type, or the generation fails.
//
// Tags of a field, or of the type that it names, for what TypeScript does not say of a number or a text:
//   @count             integer from 0
//   @integer           integer
//   @exact             integer; as text beyond 2^53 − 1, where JSON readers would lose digits
//   @real              number; NaN and infinities as text
//   @fraction          the same for `number | bigint`, which is an integer without a tag
//   @unbounded         integer from 1, or Infinity as text
//   @minimum N, @maximum N, @exclusiveMinimum N, @exclusiveMaximum N
//   @pattern REGEXP
//   @minItems N
//   @closed            object without other fields; the others may get more in a later version
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { schemaFolder } from './publisher.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const FOLDER = path.join(ROOT, 'docs/schemas');
const FOLDER_ADDRESS = schemaFolder(
  JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')),
);
const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** Written by zod from the schemas that check files of the user. */
const isOfFiles = (name) => /^(?:config[-.]|hardware\.)/.test(name);

/** Numbers as `toJson` of src/base/text/escape.ts prints them. */
const DEFINITIONS = {
  Exact: {
    description: 'An integer. Beyond ±(2^53 − 1) it is a string of digits.',
    anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^-?[0-9]+$' }],
  },
  Real: {
    description:
      'A number. NaN and infinities are strings, and so are whole numbers beyond ±(2^53 − 1).',
    anyOf: [{ type: 'number' }, { type: 'string', pattern: '^(NaN|-?Infinity|-?[0-9]+)$' }],
  },
};
const NUMBERS = {
  count: { type: 'integer', minimum: 0 },
  integer: { type: 'integer' },
  exact: { $ref: '#/$defs/Exact' },
  real: { $ref: '#/$defs/Real' },
  fraction: { $ref: '#/$defs/Real' },
  unbounded: { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'Infinity' }] },
};
const LIMITS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const OF_NUMBERS = [...Object.keys(NUMBERS), ...LIMITS];
const TAGS = [...OF_NUMBERS, 'pattern', 'minItems', 'closed', 'answer', 'title'];

/** Text and tags of a docstring. */
export function parseDocstring(comment) {
  const lines = comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''));
  const text = lines.join('\n').trim();
  const [description = '', ...rest] = text.split(/(?:^|\s+)(?=@[a-zA-Z]+\b)/);
  const isTag = text.startsWith('@');
  const tags = {};
  for (const each of isTag ? [description, ...rest] : rest) {
    const [, name, value] = /^@(\w+)\s*(.*)$/s.exec(each.trim()) ?? [];
    if (TAGS.includes(name)) tags[name] = value.trim().replaceAll(/\s+/g, ' ');
  }
  return { description: isTag ? '' : description.replaceAll(/\s+/g, ' ').trim(), tags };
}

/** The last docstring before a declaration. */
export function docstringOf(declaration) {
  const file = declaration.getSourceFile();
  const holder =
    ts.isVariableDeclaration(declaration) && declaration.parent.parent
      ? declaration.parent.parent
      : declaration;
  const ranges = ts.getLeadingCommentRanges(file.text, holder.pos) ?? [];
  const texts = ranges.map(({ pos, end }) => file.text.slice(pos, end));
  const text = texts.findLast((each) => each.startsWith('/**'));
  return text === undefined ? { description: '', tags: {} } : parseDocstring(text);
}

const placeOf = (declaration) => {
  const file = declaration.getSourceFile();
  const { line } = file.getLineAndCharacterOfPosition(declaration.getStart());
  return `${path.relative(ROOT, file.fileName)}:${line + 1}`;
};

const isOwn = (declaration) => declaration.getSourceFile().fileName.startsWith(`${ROOT}src/`);

/** The program of `src`. */
function sourceProgram() {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(
    { ...config, include: ['src'] },
    ts.sys,
    ROOT,
  );
  return ts.createProgram(fileNames, options);
}

/** Schemas of the answers. */
export class Generator {
  /** Fields without a docstring, and types that are not data. */
  problems = [];
  #checker;
  #notes;
  #results;

  constructor(program = sourceProgram()) {
    this.#checker = program.getTypeChecker();
    const types = program
      .getSourceFiles()
      .filter(({ fileName }) => fileName.startsWith(`${ROOT}src/`))
      .flatMap(({ statements }) => statements)
      .filter((each) => ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each));
    this.#results = types
      .map((declaration) => ({ declaration, ...docstringOf(declaration) }))
      .filter(({ tags }) => tags.answer !== undefined || tags.title !== undefined);
    this.#notes = types.find(({ name }) => name.text === 'AnswerNotes');
  }

  get checker() {
    return this.#checker;
  }

  /** Schema of each answer by the name of its file. @throws Error with all problems. */
  schemas() {
    const schemas = new Map(this.#results.map((result) => this.#schemaOf(result)));
    if (schemas.size < this.#results.length) throw new Error('two types have the same schema name');
    if (this.problems.length > 0) {
      throw new Error([...new Set(this.problems)].sort().join('\n'));
    }
    return schemas;
  }

  /** The results with their types, for tools that look at both. */
  results() {
    return this.#results.map((result) => {
      const type = this.#checker.getTypeAtLocation(result.declaration.name);
      return { ...result, type, name: this.#nameOf(type, result.declaration) };
    });
  }

  #schemaOf({ declaration, description, tags }) {
    const type = this.#checker.getTypeAtLocation(declaration.name);
    const name = this.#nameOf(type, declaration);
    const writer = new SchemaWriter(this.#checker, this.problems, declaration);
    const notes =
      tags.answer === undefined ? undefined : this.#checker.getTypeAtLocation(this.#notes.name);
    if (description === '') this.problems.push(`${placeOf(declaration)}: no docstring`);
    const schema = {
      $schema: DIALECT,
      $id: `${FOLDER_ADDRESS}${name}.schema.json`,
      title: tags.answer ?? tags.title,
      description,
      ...writer.root(type, notes),
    };
    return [`${name}.schema.json`, schema];
  }

  #nameOf(type, declaration) {
    const [first = type] = type.isUnion() ? type.types : [];
    const property = first.getProperty('schema');
    const value = property && this.#checker.getTypeOfSymbol(property).value;
    const name = /^minimind\/([\w-]+)@\d+$/.exec(value ?? '')?.[1];
    if (name === undefined) throw new Error(`${placeOf(declaration)}: no schema name`);
    return name;
  }
}

/** Schema of one answer, with the definitions that it uses more than once. */
class SchemaWriter {
  #checker;
  #problems;
  #declaration;
  /** Named types by their symbol: name, schema, uses. */
  #named = new Map();
  /** Named types whose definition is being written. */
  #open = new Set();

  constructor(checker, problems, declaration) {
    this.#checker = checker;
    this.#problems = problems;
    this.#declaration = declaration;
  }

  root(type, notes) {
    const extra = notes ? this.#checker.getPropertiesOfType(notes) : [];
    const schema = type.isUnion()
      ? { anyOf: type.types.map((each) => this.#object(each, extra)).sort(byKey) }
      : this.#object(type, extra);
    return this.#resolved(schema);
  }

  #problem(declaration, text) {
    this.#problems.push(`${placeOf(declaration ?? this.#declaration)}: ${text}`);
  }

  /** Inlines what is used once; the rest becomes definitions. */
  #resolved(schema) {
    const uses = new Map();
    const count = (each) => {
      if (Array.isArray(each)) for (const one of each) count(one);
      else if (typeof each === 'object' && each !== null) {
        if (each.$ref instanceof Named) {
          const seen = uses.get(each.$ref) ?? 0;
          uses.set(each.$ref, seen + 1);
          if (seen === 0) count(each.$ref.schema);
        }
        for (const one of Object.values(each)) if (!(one instanceof Named)) count(one);
      }
    };
    count(schema);
    const isShared = (named) => uses.get(named) > 1 && named.isLarge;
    const names = new Map();
    for (const named of uses.keys()) {
      if (!isShared(named)) continue;
      const other = names.get(named.name);
      if (other) this.#problem(named.declaration, `two types are called ${named.name}`);
      names.set(named.name, named);
    }
    const numbers = new Set();
    const plain = (each) => {
      if (Array.isArray(each)) return each.map(plain);
      if (typeof each !== 'object' || each === null) return each;
      const { $ref, ...rest } = each;
      if ($ref === undefined) {
        return Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, plain(one)]));
      }
      if (typeof $ref === 'string') {
        numbers.add($ref.split('/').at(-1));
        return { ...rest, $ref };
      }
      if (isShared($ref)) {
        // A docstring of a field says what the value is here, one of its type what it is anywhere.
        return { ...plain(rest), $ref: `#/$defs/${$ref.name}` };
      }
      return { ...plain($ref.schema), ...plain(rest) };
    };
    const body = plain(schema);
    const definitions = [...names.values()].map((each) => [each.name, plain(each.schema)]);
    const used = [...numbers].map((name) => [name, DEFINITIONS[name]]);
    const all = [...definitions, ...used].sort(([a], [b]) => (a < b ? -1 : 1));
    return all.length === 0 ? body : { ...body, $defs: Object.fromEntries(all) };
  }

  /** @param tags Those of the field. @param declaration Where a problem is reported. */
  #schema(type, tags, declaration) {
    const named = this.#namedOf(type);
    if (named) {
      const own = docstringOf(named);
      // Tags of a field change the schema of the type that it names, unless this is that type.
      const isOpen = this.#open.has(type.aliasSymbol ?? type.getSymbol());
      if (isOpen || Object.keys(tags).length === 0) {
        return { $ref: this.#define(type, named, own) };
      }
    }
    return this.#structure(type, tags, declaration);
  }

  /** Declaration of a type with a name of ours and without arguments. */
  #namedOf(type) {
    const { aliasSymbol, aliasTypeArguments } = type;
    if (aliasSymbol && !aliasTypeArguments) {
      const [declaration] = aliasSymbol.declarations ?? [];
      if (declaration && isOwn(declaration)) return declaration;
    }
    const symbol = type.getSymbol();
    const isPlain = !(type.objectFlags & ts.ObjectFlags.Reference) || !type.typeArguments?.length;
    const [declaration] = symbol?.declarations ?? [];
    return declaration && isPlain && isOwn(declaration) && ts.isInterfaceDeclaration(declaration)
      ? declaration
      : undefined;
  }

  #define(type, declaration, { description, tags }) {
    const key = type.aliasSymbol ?? type.getSymbol();
    const known = this.#named.get(key);
    if (known) return known;
    const named = new Named(declaration.name.text, declaration);
    this.#named.set(key, named);
    this.#open.add(key);
    const schema = this.#structure(type, tags, declaration);
    this.#open.delete(key);
    named.schema = { ...(description !== '' && { description }), ...schema };
    return named;
  }

  #structure(type, tags, declaration) {
    const { flags } = type;
    const is = (flag) => (flags & flag) !== 0;
    if (is(ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return {};
    if (is(ts.TypeFlags.Null)) return { type: 'null' };
    if (is(ts.TypeFlags.StringLiteral | ts.TypeFlags.NumberLiteral)) return { const: type.value };
    if (is(ts.TypeFlags.BooleanLiteral)) {
      return { const: this.#checker.typeToString(type) === 'true' };
    }
    if (is(ts.TypeFlags.String)) {
      return { type: 'string', ...(tags.pattern && { pattern: tags.pattern }) };
    }
    if (is(ts.TypeFlags.TemplateLiteral)) return { type: 'string', pattern: patternOf(type) };
    if (is(ts.TypeFlags.Boolean)) return { type: 'boolean' };
    if (is(ts.TypeFlags.BigInt))
      return tags.fraction === undefined ? NUMBERS.exact : NUMBERS.fraction;
    if (is(ts.TypeFlags.Number)) return numberOf(tags);
    if (type.isUnion()) return this.#union(type, tags, declaration);
    if (this.#checker.isTupleType(type)) return this.#tuple(type, tags, declaration);
    if (this.#checker.isArrayType(type)) {
      const [item] = this.#checker.getTypeArguments(type);
      const { minItems, ...inner } = tags;
      return {
        type: 'array',
        ...(minItems && { minItems: Number(minItems) }),
        items: this.#schema(item, inner, declaration),
      };
    }
    if (is(ts.TypeFlags.Object | ts.TypeFlags.Intersection)) {
      return this.#objectOrJson(type, tags, declaration);
    }
    this.#problem(declaration, `${this.#checker.typeToString(type)} is not data`);
    return {};
  }

  #objectOrJson(type, tags, declaration) {
    const toJson = type.getProperty('toJSON');
    if (toJson) {
      const [signature] = this.#checker.getTypeOfSymbol(toJson).getCallSignatures();
      return this.#schema(this.#checker.getReturnTypeOfSignature(signature), tags, declaration);
    }
    const symbol = type.getSymbol();
    const [own] = symbol?.declarations ?? [];
    const isForeign = own && !isOwn(own) && !(type.objectFlags & ts.ObjectFlags.Mapped);
    if (isForeign || type.getCallSignatures().length > 0) {
      this.#problem(declaration, `${this.#checker.typeToString(type)} is not data`);
      return {};
    }
    return this.#object(type, [], tags, declaration);
  }

  #object(type, extra, tags = {}, declaration = this.#declaration) {
    const index = this.#checker.getIndexInfosOfType(type);
    const properties = [...this.#checker.getPropertiesOfType(type), ...extra];
    const schemas = {};
    const required = [];
    const sorted = [
      ...properties.filter(({ name }) => name === 'schema'),
      ...properties.filter(({ name }) => name !== 'schema'),
    ];
    for (const property of sorted) {
      // What a type declares wins over what the base class adds.
      if (property.name in schemas) continue;
      const { schema, isRequired } = this.#property(property, tags);
      if (schema === undefined) continue;
      schemas[property.name] = schema;
      if (isRequired) required.push(property.name);
    }
    const [first] = index;
    return {
      type: 'object',
      ...(Object.keys(schemas).length > 0 && { properties: schemas }),
      ...(required.length > 0 && { required }),
      ...(first && { additionalProperties: this.#schema(first.type, tags, declaration) }),
      ...(tags.closed !== undefined && { additionalProperties: false }),
    };
  }

  #property(property, outer) {
    const [declaration = this.#declaration] = property.declarations ?? [];
    const whole = this.#checker.getTypeOfSymbol(property);
    const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0 || hasUndefined(whole);
    const isNothing = (whole.flags & (ts.TypeFlags.Never | ts.TypeFlags.Undefined)) !== 0;
    if (isNothing) return {};
    const documented = (property.declarations ?? [])
      .map(docstringOf)
      .filter(({ description, tags }) => description !== '' || Object.keys(tags).length > 0);
    const [own] = documented;
    // A field of a type with a parameter, such as the values of two adapters, is a number of the kind that the field with
    // this type says.
    const tags = own && Object.keys(own.tags).length > 0 ? own.tags : numberTags(outer);
    const schema = this.#schema(whole, tags, declaration);
    const described = {
      ...(own?.description && { description: own.description }),
      ...schema,
    };
    const isSchemaName = property.name === 'schema' && 'const' in schema;
    if (!isSchemaName && !isDescribed(described)) {
      this.#problem(declaration, `no docstring of ${property.name}`);
    }
    return { schema: described, isRequired: !isOptional };
  }

  #tuple(type, tags, declaration) {
    const items = this.#checker.getTypeArguments(type);
    const labels = type.target.labeledElementDeclarations ?? [];
    const schemas = items.map((item, at) => {
      const label = labels[at];
      const own = label ? docstringOf(label) : { description: '', tags: {} };
      const inner = Object.keys(own.tags).length > 0 ? own.tags : tags;
      return {
        ...(own.description && { description: own.description }),
        ...this.#schema(item, inner, declaration),
      };
    });
    const { length } = schemas;
    if (type.target.hasRestElement) {
      const [last = {}] = schemas.slice(-1);
      return { type: 'array', minItems: type.target.minLength, items: last };
    }
    return { type: 'array', prefixItems: schemas, minItems: length, maxItems: length };
  }

  #union(type, tags, declaration) {
    // The origin keeps the names of the unions in a union.
    const { types: all } = type.origin?.flags & ts.TypeFlags.Union ? type.origin : type;
    const members = all.filter(({ flags }) => !(flags & ts.TypeFlags.Undefined));
    if (members.length === 1) return this.#schema(members[0], tags, declaration);
    const has = (flag) => members.some(({ flags }) => (flags & flag) !== 0);
    const isExact = has(ts.TypeFlags.BigInt);
    const isBoolean = members.filter(({ flags }) => flags & ts.TypeFlags.BooleanLiteral).length > 1;
    const values = [];
    const schemas = [];
    for (const member of members) {
      const { flags } = member;
      if (flags & (ts.TypeFlags.StringLiteral | ts.TypeFlags.NumberLiteral)) {
        values.push(member.value);
      } else if (flags & ts.TypeFlags.BooleanLiteral && isBoolean) {
      } else if (flags & ts.TypeFlags.Number && isExact) {
      } else schemas.push(this.#schema(member, tags, declaration));
    }
    if (isBoolean) schemas.push({ type: 'boolean' });
    if (values.length > 0) {
      const sorted = values.sort((a, b) => (a < b ? -1 : 1));
      schemas.push(sorted.length === 1 ? { const: sorted[0] } : { enum: sorted });
    }
    const unique = [...new Map(schemas.map((each) => [keyOf(each), each])).values()].sort(byKey);
    if (unique.length === 1) return unique[0];
    const types = unique.map(({ type: each, ...rest }) =>
      typeof each === 'string' && Object.keys(rest).length === 0 ? each : undefined,
    );
    // The short form of what may be null.
    if (types.length === 2 && types[1] === 'null' && types[0] !== undefined) {
      return { type: types };
    }
    return { anyOf: unique };
  }
}

/** A type with a name. */
class Named {
  name;
  declaration;
  schema = {};
  constructor(name, declaration) {
    this.name = name;
    this.declaration = declaration;
  }

  /** Whether a definition is shorter than what it replaces. */
  get isLarge() {
    const { description: _, ...rest } = this.schema;
    return 'properties' in rest || 'anyOf' in rest || (rest.enum?.length ?? 0) > 6;
  }
}

const keyOf = (schema) =>
  JSON.stringify(schema, (_key, value) => (value instanceof Named ? value.name : value));
/** The order of alternatives; TypeScript orders the members of a union by when it first met them. */
const byKey = (a, b) => {
  const [first, second] = [a, b].map((each) => (each.type === 'null' ? '~~' : keyOf(each)));
  return first < second ? -1 : 1;
};

const isDescribed = (schema) =>
  'description' in schema || (schema.$ref instanceof Named && 'description' in schema.$ref.schema);

const numberTags = (tags) =>
  Object.fromEntries(Object.entries(tags).filter(([name]) => OF_NUMBERS.includes(name)));

const hasUndefined = (type) =>
  type.isUnion() && type.types.some(({ flags }) => flags & ts.TypeFlags.Undefined);

function numberOf(tags) {
  const kind = Object.keys(NUMBERS).find((each) => each in tags);
  const limits = LIMITS.filter((each) => each in tags).map((each) => [each, Number(tags[each])]);
  if (limits.length > 0 && kind === 'real') {
    const [number, ...texts] = DEFINITIONS.Real.anyOf;
    return { anyOf: [{ ...number, ...Object.fromEntries(limits) }, ...texts] };
  }
  return { ...(kind ? NUMBERS[kind] : { type: 'number' }), ...Object.fromEntries(limits) };
}

/** Regular expression of a template literal type. */
function patternOf({ texts, types }) {
  const quoted = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'));
  const inner = types.map(({ flags }) =>
    flags & (ts.TypeFlags.Number | ts.TypeFlags.BigInt) ? '-?\\d+(\\.\\d+)?' : '.*',
  );
  return `^${quoted.map((text, at) => text + (inner[at] ?? '')).join('')}$`;
}

const textOf = (schema) => `${JSON.stringify(schema, null, 2)}\n`;

/** Names of files that differ from what the types say. */
export function outdated(schemas) {
  const present = readdirSync(FOLDER).filter((name) => !isOfFiles(name));
  const names = [...new Set([...present, ...schemas.keys()])].sort();
  return names.filter((name) => {
    const schema = schemas.get(name);
    if (schema === undefined || !present.includes(name)) return true;
    const written = JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'));
    return ordered(written) !== ordered(JSON.parse(textOf(schema)));
  });
}

/** Text of a schema without its order. That of fields from several types follows from the order in which files are read. */
function ordered(value) {
  if (Array.isArray(value)) return `[${value.map(ordered).sort().join()}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.keys(value).map((key) => `${JSON.stringify(key)}:${ordered(value[key])}`);
  return `{${fields.sort().join()}}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const schemas = new Generator().schemas();
  const different = outdated(schemas);
  if (!process.argv.includes('--check')) {
    mkdirSync(FOLDER, { recursive: true });
    for (const name of different) {
      const schema = schemas.get(name);
      if (schema === undefined) rmSync(path.join(FOLDER, name));
      else writeFileSync(path.join(FOLDER, name), textOf(schema));
    }
  } else if (different.length > 0) {
    console.error(
      `docs/schemas is not up to date: run npm run docs:schemas\n${different.join('\n')}`,
    );
    process.exitCode = 1;
  }
}
