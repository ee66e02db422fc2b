/** What any file must be before its format is looked at. */
export const FILE_RULES = {
  'file-is-regular': 'A checkpoint is a file or a folder, no pipe and no device.',
  'file-is-whole': 'A file keeps its length while it is read.',
  'file-kind': 'A file begins as one of the formats that hold weights does.',
} as const;
