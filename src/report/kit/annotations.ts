/**
 * Problems as workflow commands of GitHub Actions, which show them at their lines in a pull request. Format:
 * docs.github.com/actions, "Workflow commands"; its escapes are those of @actions/core, command.ts.
 */
import type { Problem, UserError } from '../../base/errors.js';
import { printable } from '../../base/text/escape.js';
import { shortened } from '../../base/text/words.js';

/** Maximum characters of a message: GitHub cuts a long one. */
const MOST_MESSAGE = 2000;

/**
 * One line for each problem.
 * @param root Folder of the repository: GitHub finds files by their paths from it.
 */
export const annotations = (problems: readonly Problem[], root: string | undefined): string =>
  problems.map((problem) => `${annotation(problem, root)}\n`).join('');

/** One line for each problem of an error, or one for the error. */
export const errorAnnotations = (error: UserError, root: string | undefined): string =>
  error.problems.length > 0
    ? annotations(error.problems, root)
    : `::error title=minimind::${data(annotationText(error))}\n`;

function annotation(problem: Problem, root: string | undefined): string {
  const { severity, file, line, column } = problem;
  const isFile = !/^(?:<|--)/.test(file);
  const place = [
    ...(isFile ? [`file=${property(fromRoot(file, root))}`] : []),
    ...(isFile && line !== undefined ? [`line=${line}`] : []),
    ...(isFile && column !== undefined ? [`col=${column}`] : []),
    `title=${property(problem.path ?? 'minimind')}`,
  ];
  return `::${severity} ${place.join(',')}::${data(annotationText(problem))}`;
}

const annotationText = ({
  message,
  suggestion,
}: {
  readonly message: string;
  readonly suggestion?: string | undefined;
}): string =>
  shortened(message, MOST_MESSAGE) + (suggestion === undefined ? '' : `\n${suggestion}`);

/** A path from the folder of the repository, where the user wrote one from the root of the disk. */
const fromRoot = (file: string, root: string | undefined): string =>
  root !== undefined && file.startsWith(`${root}/`) ? file.slice(root.length + 1) : file;

/** Line breaks and percent signs would end a command, or be read as escapes. */
const data = (text: string): string =>
  text
    .split('\n')
    .map((line) => printable(line).replaceAll('%', '%25'))
    .join('%0A');

const property = (text: string): string => data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
