/** Reads a command line against the declared arguments and flags of its command, before the command library does. */
import { checkAnswerFile, checkArguments } from './check-arguments.js';
import { checkRelations } from './check-relations.js';
import { readWords } from './read-words.js';
import { type DeclaredCommand, type Meanings, TypedLine } from './typed-line.js';

/**
 * The words of a command line with the spellings that the command declares: flags and choices in any case, and by
 * their common names.
 * @param words The words after the command's name.
 * @param others All commands, which may have a flag that this one lacks.
 * @param isOfTool Whether another tool has the words: its flags without a counterpart are left out.
 * @throws UserError for the first mistake, with the corrected command line where there is one; NeedsMeanings.
 */
export function readCommandLine(
  words: readonly string[],
  command: DeclaredCommand,
  others: readonly DeclaredCommand[],
  meanings?: Meanings,
  isOfTool = false,
): string[] {
  const typed = new TypedLine(command, words, others, meanings, isOfTool);
  readWords(typed);
  checkArguments(typed);
  checkAnswerFile(typed);
  checkRelations(typed);
  return [...typed.words];
}
