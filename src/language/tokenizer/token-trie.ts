/**
 * Tries of tokens, as the library builds them: one node per character that tokens do not share. For a text, they yield
 * one piece for each token that begins at a character.
 */

/**
 * Maximum nodes of a trie, about 200 bytes each. Published vocabularies have about two nodes per token: Gemma 3 has
 * 461,000 for 262,000 tokens.
 */
export const MOST_NODES = { small: 1_200_000, perByte: 1 / 12 } as const;

/**
 * Pieces that begin at one character: at most one for each length of a token. SentencePiece limits a piece to 16
 * characters, unless the training says otherwise. The tokens of Gemma 3 have 31 lengths, with its runs of spaces.
 */
export const USUAL_LENGTHS = 64;

/** Maximum pieces of a text when tokens have more lengths than usual. */
const MOST_PIECES = 4_000_000;

/** Nodes of a trie of these tokens. */
export function trieNodes(tokens: readonly string[]): number {
  let nodes = 0;
  let before = '';
  for (const token of tokens.toSorted()) {
    nodes += token.length - sharedStart(before, token);
    before = token;
  }
  return nodes;
}

function sharedStart(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at;
}

/** Whether a trie of these tokens has more than `most` nodes. */
export function isLargeTrie(tokens: readonly string[], most: number): boolean {
  // No trie has more nodes than its tokens have characters. The sum avoids sorting, which is slow.
  let characters = 0;
  for (const token of tokens) characters += token.length;
  return characters > most && trieNodes(tokens) > most;
}

/** Check of the number of pieces that a model with these tokens finds in a text of some characters. */
export function pieceCheck(tokens: readonly string[]): (characters: number) => boolean {
  const lengths = new Set(tokens.map((token) => token.length)).size;
  return (characters) => lengths <= USUAL_LENGTHS || lengths * characters <= MOST_PIECES;
}
