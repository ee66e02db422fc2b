/** What a path must lead to before any format is looked at. */
export const FILE_RULES = {
  'file-is-regular': 'A checkpoint is a file or a folder, no pipe and no device.',
  'file-is-whole': 'A file keeps its length while it is read.',
  'file-stays': 'A path keeps leading to the file that was opened.',
  'file-kind': 'A file begins as one of the formats that hold weights does.',
  'folder-holds-weights': 'A folder holds a file of weights, or an index of some.',
  'folder-is-one': 'A folder holds one checkpoint; of several, the path says which one.',
} as const;
