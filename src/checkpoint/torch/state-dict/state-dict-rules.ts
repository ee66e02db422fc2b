/** What the tensors of a PyTorch file, and the dict that holds them, must keep to. */
export const STATE_DICT_RULES = {
  'storage-id': 'A persistent id names a storage, as PyTorch writes it.',
  'storage-key': 'The key of a storage is a decimal number, as PyTorch writes it.',
  'storage-location': 'The location of a storage is a device, such as cpu or cuda:0.',
  'storage-device': 'A storage has values: none lies on the meta device.',
  'storage-length': 'The length of a storage is a number of elements whose bytes can be counted.',
  'storage-agrees': 'A storage is named with the same type and length wherever it is used.',
  'storage-record': 'The archive holds every storage that the pickle names.',
  'storage-size': 'The record of a storage has exactly the bytes of its elements.',
  'storage-words': 'In a big-endian file, tensors have words as long as those of their storage.',
  'storage-view': 'A view of a storage lies in it.',
  'storage-view-key':
    'The key of a view means one part of one storage, and is no key of a storage.',
  'tensor-arguments': 'A tensor is rebuilt from a storage, an offset, sizes and strides.',
  'tensor-numbers':
    'Offset, sizes and strides are integers, none negative, as many strides as sizes.',
  'tensor-rank': 'A tensor has at most 8 dimensions.',
  'tensor-dtype': 'The element type of a tensor is one that files store.',
  'tensor-flags':
    'A tensor has no flags, such as neg and conj, so that its stored bytes are its values.',
  'tensor-gradient':
    'Whether a tensor requires gradients is False, or True for floats and complex numbers.',
  'tensor-elements': 'The bytes of a tensor can be counted exactly.',
  'tensor-bounds': 'Every element of a tensor lies in its storage.',
  'tensor-amplification': 'A tensor has at most as many elements as its storage, or 2^20.',
  'tensor-view': 'A tensor on a view begins at a multiple of the bytes of its elements.',
  'parameter-data': 'A parameter is made of a tensor, and as many arguments as it takes.',
  'parameter-state': 'A parameter has no attributes of its own.',
  'legacy-magic': 'A legacy file begins with the magic number of PyTorch.',
  'legacy-protocol': 'The protocol of a legacy file is 1001.',
  'legacy-system': 'A legacy file says that its values are little-endian.',
  'legacy-typed': 'The storages of a legacy file have an element type.',
  'legacy-keys': 'A legacy file lists exactly the storages that its object uses.',
  'legacy-length': 'Each storage of a legacy file has the length that the object says.',
  'legacy-whole': 'The storages of a legacy file lie in the file.',
  'legacy-end': 'A legacy file ends with its last storage.',
  'state-dict-missing': 'A file holds a dict of tensors by name.',
  'state-dict-many':
    'Only one dict of a file holds the tensors of the model, unless one is chosen.',
  'state-dict-key':
    'A key of the dicts that are searched for a state dict has at most 65,536 characters.',
  'state-dict-content':
    'Beside a state dict there are at most 100,000 values, whose names have at most 2^24 characters together.',
  'state-dict-views':
    'The tensors of a state dict, tied ones once, take at most 8 times the bytes of the file, and 64 MiB more.',
  'state-dict-choice': 'The dict that was chosen is there, and holds tensors.',
} as const;
