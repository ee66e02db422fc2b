/** What the index of several files, and those files, must keep to. */
export const SHARD_RULES = {
  'shard-index-size': 'An index has at most 32,000,000 bytes.',
  'shard-index-utf8': 'An index is UTF-8.',
  'shard-index-depth': 'An index nests its values at most 32 deep.',
  'shard-index-keys': 'An index has at most 400,000 keys.',
  'shard-index-key-twice': 'Each key stands once in its object of an index.',
  'shard-index-json': 'An index is JSON.',
  'shard-index-object': 'An index is an object.',
  'shard-index-map': 'An index has an object weight_map.',
  'shard-index-empty': 'The weight_map of an index names a tensor.',
  'shard-count': 'An index names at most 10,000 shards.',
  'shard-name-text': 'The weight_map gives for each tensor the name of its shard.',
  'shard-name-path': 'The name of a shard is a path that goes down from the folder of the index.',
  'shard-name-extension': 'The extension of a shard is the one that the name of the index states.',
  'shard-exists': 'Every shard that the index names is there.',
  'shard-in-folder':
    'A shard that is a link leads to a file in the folder of the index, before and after it is opened.',
  'shard-format': 'All shards have the same format.',
  'shard-state-dict': 'The tensors of all shards stand under the same keys.',
  'shard-tensor-present': 'A shard holds each tensor that the index places in it.',
  'shard-tensor-listed': 'The index names each tensor that a shard holds.',
  'shard-tensor-place':
    'A tensor stands in the shard in which the index places it, and in no other.',
} as const;
