/** Turns system errors of writing into messages with a suggestion. */
import { UserError } from '../errors.js';

/**
 * Runs an action that the system may reject.
 * @param target The output as the user wrote it, for the message.
 * @param where Progress of the write so far, for the message.
 * @throws UserError if the system reports an error; rethrows other errors.
 */
export async function explained<T>(
  target: string,
  act: () => T | Promise<T>,
  where = '',
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw cannotWrite(target, error, where);
  }
}

function cannotWrite(target: string, error: unknown, where: string): unknown {
  const code = codeOf(error);
  if (error instanceof UserError || code === undefined) return error;
  if (code === 'EEXIST') return alreadyExists(target);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new UserError('usage', `cannot write ${target}: there is no such folder`, {
      suggestion: 'make the folder first, or choose another',
      cause: error,
    });
  }
  const suggestion = ADVICE.get(code);
  return new UserError('system', `cannot write ${target}${where}: ${(error as Error).message}`, {
    cause: error,
    ...(suggestion && { suggestion }),
  });
}

export const alreadyExists = (target: string) =>
  new UserError('usage', `${target} exists already`, {
    suggestion: 'choose another name, or replace it with --force',
  });

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'free some space, or write to another disk'],
  ['EDQUOT', 'free some of your quota, or write to another disk'],
  ['EFBIG', 'write to a file system that takes files of this size'],
  ['EROFS', 'choose a folder that can be written to'],
  ['EACCES', 'check the permissions of the folder'],
  ['EPERM', 'check the permissions of the folder'],
]);

/** System code of an error, such as ENOSPC. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
