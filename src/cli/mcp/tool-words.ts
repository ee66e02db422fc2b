/** Errors of the command line in the words of the tools: a client has inputs, no flags and no shell. */
import { TOOLS } from './tools.js';

const COMMAND = /\bminimind ([a-z][a-z-]*)/;

const FLAG = /--([a-z][a-z-]*)/g;

/** Inputs of a tool. */
const inputsOf = (tool: string): readonly string[] => Object.keys(TOOLS[tool]?.input.shape ?? {});

/**
 * An error as a client of the tool can use it: flags are inputs, and advice to use a flag or a command that no tool has is
 * left out.
 */
export function inToolWords(text: string, tool: string): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const [, start, advice] = /^(\s*→ |Next: )(.*)$/.exec(line) ?? [];
      if (start === undefined || advice === undefined) return [withInputs(line, tool)];
      const kept = advice.split(/; /).flatMap((each) => adviceFor(each, tool) ?? []);
      return kept.length === 0 ? [] : [start + kept.join('; ')];
    })
    .join('\n');
}

/** One sentence of an advice; undefined if it needs what no tool has. */
function adviceFor(sentence: string, tool: string): string | undefined {
  const useful = sentence
    .split(/, or /)
    .filter((each) => areInputs(each, COMMAND.exec(each)?.[1] ?? tool))
    .join(', or ');
  return useful === '' ? undefined : withTools(withInputs(useful, tool));
}

/** Whether a command is a tool, which has inputs for all flags of a text. */
const areInputs = (text: string, tool: string): boolean =>
  tool in TOOLS && [...text.matchAll(FLAG)].every(([, name = '']) => inputsOf(tool).includes(name));

/** `--gpu h100` as `gpu: h100`, for inputs of the tool. */
const withInputs = (text: string, tool: string): string => {
  const names = inputsOf(COMMAND.exec(text)?.[1] ?? tool);
  return text.replaceAll(
    /--([a-z][a-z-]*)(=|(?=( (?!-))?))/g,
    (flag, name: string, equals, value) =>
      names.includes(name) ? `${name}${equals || value ? ':' : ''}${equals ? ' ' : ''}` : flag,
  );
};

/** `write minimind profile x.yaml` as `call profile with x.yaml`. */
const withTools = (text: string): string =>
  text.replace(/\b(?:write )?minimind ([a-z][a-z-]*) ?/, (_, tool) => `call ${tool} with `);
