/** Finds what YAML allows and JSON does not, in files that other programs read as JSON. */
import type { ProblemText } from '../../base/errors.js';
import { jsonOrUndefined } from '../../base/text/json.js';
import { quote } from '../quote.js';

/** A mistake at a UTF-16 offset of the text. */
interface JsonMistake {
  readonly offset: number;
  readonly finding: ProblemText;
}

/** A text in quotes, a comment, a bracket or separator, or a word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|#[^\n]*|[[\]{},:]|[^\s"'[\]{},:]+/gsu;

/** Words of JSON, and the numbers that Python writes in addition. */
const WORD = /^(?:true|false|null|NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;

/**
 * The first spelling in a YAML text that readers of JSON refuse: a comma after the last value, a comment, a text
 * without double quotes. Undefined for JSON.
 * @param text Valid YAML.
 */
export function jsonMistake(text: string): JsonMistake | undefined {
  if (jsonOrUndefined(text) !== undefined) return undefined;
  let comma: number | undefined;
  for (const { 0: token, index: offset } of text.matchAll(TOKEN)) {
    if (comma !== undefined && /^[\]}]/.test(token)) {
      return {
        offset: comma,
        finding: {
          message: 'a comma follows the last value, which JSON does not allow',
          suggestion: 'remove the comma',
        },
      };
    }
    const finding = findingOf(token);
    if (finding) return { offset, finding };
    comma = token === ',' ? offset : undefined;
  }
  return undefined;
}

function findingOf(token: string): ProblemText | undefined {
  if (/^["[\]{},:]/.test(token) || WORD.test(token)) return undefined;
  if (token.startsWith('#')) {
    return { message: 'a comment, which JSON does not allow', suggestion: 'remove the comment' };
  }
  if (/^(?:true|false|null|none)$/i.test(token)) {
    const written = token.toLowerCase().replace('none', 'null');
    return { message: `${quote(token)} is not JSON`, suggestion: `write ${written}` };
  }
  return {
    message: `${quote(token)} is not JSON: texts and keys need double quotes`,
    suggestion: 'put it in double quotes, or name the file .yaml',
  };
}
