import { publishedModelNamed } from '../published/published-models.js';

/** The way without a network for a repository whose sizes are part of the program; undefined for any other. */
export const builtInAdvice = (repository: string): string | undefined =>
  publishedModelNamed(repository) &&
  `where its sizes are enough, write ${repository} alone: they are built in`;
