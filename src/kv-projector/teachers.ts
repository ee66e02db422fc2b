/** Teachers of a projector: given by name and sizes, or by configs. */
import fs from 'node:fs';
import path from 'node:path';
import { countParameters } from '../budget/parameters.js';
import { quote } from '../config/quote.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { loadModelFile } from '../model-input/model-file.js';
import type { SizedTeacher } from './costs.js';
import { parseTeacher, sharedModules, sizeInName, sizeOfModel } from './projector.js';

interface LoadedTeachers {
  readonly teachers: readonly SizedTeacher[];
  readonly warnings: readonly Problem[];
}

/**
 * Loads the teachers of `--teacher`, in order.
 * @throws UserError for a teacher that is neither a name with sizes nor a config, or two that would share an
 * adapter.
 */
export async function loadTeachers(written: readonly string[]): Promise<LoadedTeachers> {
  const teachers: SizedTeacher[] = [];
  const warnings: Problem[] = [];
  for (const text of written) {
    const teacher = parseTeacher(text);
    if (teacher) {
      teachers.push({ ...teacher, size: sizeInName(teacher.name) ?? null });
      continue;
    }
    const loaded = await teacherOf(text);
    teachers.push(loaded.teacher);
    warnings.push(...loaded.warnings);
  }
  refuseShared(teachers.map(({ name }) => name));
  return { teachers, warnings };
}

/** @throws UserError when two teachers would share an adapter. */
function refuseShared(names: readonly string[]): void {
  const [pair] = sharedModules(names);
  if (pair === undefined) return;
  const { module, first, second } = pair;
  const problem =
    first === second
      ? `${quote(first)} stands twice`
      : `${quote(first)} and ${quote(second)} are both called ${quote(module)} in a projector`;
  throw new UserError('usage', `--teacher: ${problem}`, {
    suggestion: 'give each teacher a name of its own, as in --teacher other:5120x40',
  });
}

async function teacherOf(file: string) {
  if (!fs.existsSync(file)) {
    throw new UserError('usage', `--teacher: ${quote(file)} has no sizes, and is no file`, {
      suggestion:
        'write NAME:WIDTHxLAYERS as in --teacher Qwen2-14B:5120x40, or the path of a config',
    });
  }
  const { model, warnings } = await loadModelFile(file);
  const name = nameOf(file);
  const teacher: SizedTeacher = {
    name,
    // The last norm has the width of every block's output.
    width: model.norm.weight.elements,
    layers: model.blocks.length,
    size: sizeOfModel(name, countParameters(model).parameters),
  };
  return { teacher, warnings };
}

/** A folder, or the folder of a config.json, gives its name; any other file its name without extension. */
function nameOf(file: string): string {
  const place = path.resolve(file);
  const { name, dir, base } = path.parse(place);
  if (fs.statSync(place).isDirectory()) return base;
  return base === 'config.json' ? path.basename(dir) : name;
}
