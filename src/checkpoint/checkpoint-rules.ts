/**
 * All rules for checkpoints, by name. An error names the rule that is violated. Each rule is checked in exactly
 * one place and has a test that violates only this rule.
 */
import { UserError } from '../base/errors.js';

// Text shared by the errors of all formats.

export const FETCH_AGAIN = 'copy or download the file again';

const MAX_SHOWN_CHARACTERS = 200;

/** Quotes text from a file in a message; long text is cut. */
export function quoted(text: string): string {
  const isLong = text.length > MAX_SHOWN_CHARACTERS;
  return JSON.stringify(isLong ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text);
}

export const exactBytesText = (count: number | bigint) =>
  `${count} ${Number(count) === 1 ? 'byte' : 'bytes'}`;

/** A tensor as the place of a problem. */
export const tensorPlace = (name: string) => `tensor ${quoted(name)}`;

const MAX_LISTED = 10;

/** Names from a file or folder in a message: the first ones and the number of the others. */
export function quotedNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED).map(quoted).join(', ');
  const more = names.length - MAX_LISTED;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** Rules for paths, checked before the format. */
export const FILE_RULES = {
  'file-is-regular': 'A checkpoint is a file or a folder, no pipe and no device.',
  'file-is-whole': 'A file keeps its length while it is read.',
  'file-stays': 'A path keeps leading to the file that was opened.',
  'file-kind': 'A file begins as one of the formats that hold weights does.',
  'folder-holds-weights': 'A folder holds a file of weights, or a shard index.',
  'folder-is-one': 'A folder holds one checkpoint; of several, the path says which one.',
  'files-hold-tensors':
    'The tensors of all files together have at most 8 times the bytes of the files, and 64 MiB.',
} as const;

/** Smaller files must take little time and memory, regardless of their content. */
export const SMALL_FILE = 16e6;

/** Maximum bytes of all tensors for files of a size. Views rarely overlap, and at most twice; some are expanded. */
export const mostTensorBytes = (fileBytes: number): number => 8 * fileBytes + 2 ** 26;

/** Rules for tensor names without wrapper prefixes. */
export const NAME_RULES = {
  'names-collide': 'Names stay different when the prefixes of wrappers are taken off.',
} as const;

export const SAFETENSORS_RULES = {
  'st-length-field': 'A file begins with the 8 bytes that hold the length of its header.',
  'st-header-length': 'A header has from 2 to 100,000,000 bytes.',
  'st-header-whole': 'The header ends within the file.',
  'st-header-start': 'A header begins with an opening brace.',
  'st-header-utf8': 'A header is UTF-8.',
  'st-header-json': 'A header is strict JSON, with a value of the right kind in each place.',
  'st-surrogate': 'Escaped surrogates in a string come in pairs.',
  'st-integer': 'Sizes and offsets are plain integers from 0 to 2^53 − 1.',
  'st-padding': 'Only spaces follow the closing brace of a header.',
  'st-tensors': 'A header has at most 200,000 tensors, in a file below 16 MB at most 100,000.',
  'st-name-length': 'A name, or a key of the metadata, has at most 65,536 bytes in a header.',
  'st-name-twice': 'A header has each name once.',
  'st-metadata-twice': 'The metadata has each key once.',
  'st-metadata-size': 'The metadata have at most 100,000 keys.',
  'st-field-twice': 'A tensor has each field once.',
  'st-field-unknown': 'A tensor has no other fields than dtype, shape and data_offsets.',
  'st-field-missing': 'A tensor has all of the fields dtype, shape and data_offsets.',
  'st-dtype': 'The dtype of a tensor is one that the format knows.',
  'st-rank': 'A tensor has at most 64 dimensions.',
  'st-elements': 'The sizes of a tensor, zeros left out, multiply to at most 2^53 − 1.',
  'st-bytes': 'The elements of a tensor are a whole number of bytes, at most 2^53 − 1.',
  'st-offsets': 'The place of a tensor is a beginning and an end.',
  'st-span': 'A tensor has exactly the bytes that its shape and dtype need.',
  'st-tiling': 'In order of their offsets, each tensor begins where the one before it ends.',
  'st-data-end': 'The last tensor ends where the file ends.',
} as const;

export const GGUF_RULES = {
  'gguf-version': 'The version of the format is 2 or 3, in little-endian bytes.',
  'gguf-whole': 'Metadata and tensor list end within the file.',
  'gguf-counts':
    'A file has at most 100,000 keys and 200,000 tensors, below 16 MB at most 12,000, and bytes for all of them.',
  'gguf-key': 'A key has 1 to 65,535 bytes of UTF-8.',
  'gguf-key-twice': 'The metadata has each key once.',
  'gguf-value-type': 'A value has one of the 13 types of the format.',
  'gguf-boolean': 'A boolean is 0 or 1.',
  'gguf-string': 'A string that is not in an array is UTF-8.',
  'gguf-strings': 'The strings that are not in arrays have at most 16 MiB together.',
  'gguf-array': 'The elements of an array are numbers, booleans or strings.',
  'gguf-array-strings': 'Arrays have at most 8,000,000 strings together.',
  'gguf-array-elements':
    'Arrays of at most 4,096 elements have at most 1,048,576 elements together.',
  'gguf-alignment': 'The alignment is an unsigned 32-bit power of two from 8 on.',
  'gguf-name': 'The name of a tensor has 1 to 127 bytes of UTF-8.',
  'gguf-name-twice': 'A file has each tensor name once.',
  'gguf-rank': 'A tensor has 1 to 4 dimensions.',
  'gguf-elements': 'The sizes of a tensor, zeros left out, multiply to at most 2^53 − 1.',
  'gguf-type': 'The type of a tensor is one that ggml defines.',
  'gguf-block': 'The rows of a tensor are a whole number of blocks of its type.',
  'gguf-offset': 'The offset of a tensor is a multiple of the alignment.',
  'gguf-tiling':
    'In order of their offsets, each tensor begins at the first aligned byte after the one before it.',
  'gguf-data-end': 'The file ends with its last tensor, or with the padding after it.',
  'gguf-part-name':
    'A file of several has a name that ends in -00001-of-00003.gguf, with its number.',
  'gguf-part-present': 'All files of a split model are there.',
  'gguf-part-agrees': 'Each file of a split model has its own number and the number of files.',
  'gguf-part-tensors':
    'A split model has the number of tensors that its first file states, each in one file.',
} as const;

/** Rules for importance matrices of llama.cpp. */
export const IMATRIX_RULES = {
  'imatrix-whole':
    'The entries of a file end within it. In a .dat file, at most a number of chunks and the name of the data follow.',
  'imatrix-entries':
    'A file has 1 to 200,000 entries, below 16 MB at most 12,000, and bytes for all of them.',
  'imatrix-name': 'The name of an entry has 1 to 127 bytes of UTF-8.',
  'imatrix-name-twice': 'A file has each name once.',
  'imatrix-pair':
    'In a GGUF file, each tensor .in_sum2 of float32 has one .counts, whose length divides its own.',
  'imatrix-length': 'An entry has at least one value.',
  'imatrix-value': 'Values and counts are finite and not negative, mean squares at most 1e12.',
  'imatrix-zero': 'An entry has a value above 0.',
} as const;

/** Rules for a shard index and its files. */
export const SHARD_RULES = {
  'shard-index-size': 'An index has at most 32,000,000 bytes.',
  'shard-index-utf8': 'An index is UTF-8.',
  'shard-index-depth': 'An index nests its values at most 32 deep.',
  'shard-index-keys': 'An index has at most 400,000 keys.',
  'shard-index-key-twice': 'An object of an index has each key once.',
  'shard-index-json': 'An index is JSON.',
  'shard-index-object': 'An index is an object.',
  'shard-index-map': 'An index has an object weight_map.',
  'shard-index-empty': 'The weight_map of an index names a tensor.',
  'shard-count': 'An index names at most 4,000 shards.',
  'shard-tensor-count': 'Shards with less than 16 MB together have at most 50,000 tensors.',
  'shard-name-text': 'The weight_map gives for each tensor the name of its shard.',
  'shard-name-path': 'The name of a shard is a path that goes down from the folder of the index.',
  'shard-name-extension': 'The extension of a shard is the one that the name of the index states.',
  'shard-exists': 'Every shard that the index names is there.',
  'shard-in-folder':
    'A shard that is a link leads to a file in the folder of the index, before and after it is opened.',
  'shard-format': 'All shards have the same format.',
  'shard-state-dict': 'The tensors of all shards are under the same keys.',
  'shard-tensor-present': 'A shard holds each tensor that the index places in it.',
  'shard-tensor-listed': 'The index names each tensor that a shard holds.',
  'shard-tensor-place': 'A tensor is only in the shard that the index names for it.',
} as const;

/** Rules for checkpoints that several processes wrote. */
const DISTRIBUTED_RULES = {
  'part-count': 'The parts of a tensor are few enough to compare them with each other.',
  'part-overlap': 'No two parts of a tensor overlap.',
  'part-missing': 'The parts of a tensor cover it.',
  'part-in-folder': 'A file of parts that is a link leads to a file in the folder.',
  'dcp-metadata': 'A folder with .distcp files holds .metadata, which PyTorch writes last.',
  'dcp-record': 'The metadata consist of the records of PyTorch, each with its fields.',
  'dcp-keys': 'Each value has a place of its own in the state dict that was saved.',
  'dcp-shape': 'A tensor has at most 8 dimensions and a number of bytes that can be counted.',
  'dcp-dtype': 'A tensor is dense, and of a type that files store.',
  'dcp-part-inside': 'A part has as many dimensions as its tensor, and lies inside it.',
  'dcp-part-once': 'A part has one place.',
  'dcp-part-stored': 'Each part of a tensor has a place in a file.',
  'dcp-part-plain': 'A part is stored as it is, without compression.',
  'dcp-part-bytes': 'A part lies inside its file.',
  'dcp-part-apart': 'No two parts share bytes of a file.',
  'dcp-part-tensor': 'A part is saved as a tensor of its sizes and the type of the whole.',
  'dcp-file-name': 'A file is named by a path that goes down from the folder.',
  'dcp-file-exists': 'Every file that the metadata name is there.',
  'zero-tag': 'The file latest holds the name of a folder next to it.',
  'zero-latest': 'The folder that the file latest names holds files of ZeRO.',
  'zero-model-states': 'A step has a file with the names and shapes of the parameters.',
  'zero-model-parallel': 'No model is split between processes by another method than ZeRO.',
  'zero-rank-once': 'A process has one file of each kind.',
  'zero-rank-missing': 'The processes of a step are numbered from 0 without a gap.',
  'zero-entry': 'The entries that say where parameters are have the kinds that DeepSpeed writes.',
  'zero-experts': 'All groups of parameters are split between all processes.',
  'zero-stage': 'All processes are of one stage.',
  'zero-world': 'A step has the files of as many processes as each of them states.',
  'zero-vectors': 'All processes have as many vectors, of the same types.',
  'zero-groups': 'Stages 1 and 2 have a vector for each group of parameters.',
  'zero-sum': 'The vectors hold the elements of the parameters, and padding only for alignment.',
  'zero-shape': 'A parameter has at most 8 dimensions and a number of bytes that can be counted.',
  'zero-frozen': 'A frozen parameter has fragments of the sizes that follow from its shape.',
  'zero-name-once': 'A name belongs to one tensor.',
} as const;

/** Rules for LoRA adapters of PEFT. */
const ADAPTER_RULES = {
  'adapter-object': 'The settings are an object of JSON in UTF-8, of at most 4 MiB.',
  'adapter-json': 'The settings are strict JSON.',
  'adapter-depth': 'The settings nest their values at most 32 deep.',
  'adapter-keys': 'The settings have at most 100,000 keys.',
  'adapter-key-twice': 'An object of the settings has each key once.',
  'adapter-type': 'The kind of the adapter is LoRA.',
  'adapter-number': 'Ranks and alphas are numbers above 0.',
  'adapter-flag': 'A setting that is on or off is true or false.',
  'adapter-names': 'Modules are named in a list of texts.',
  'adapter-layers': 'Layers are numbers.',
  'adapter-pattern': 'Ranks and alphas of modules are an object of patterns.',
  'adapter-expression':
    'The patterns are regular expressions of Python, of at most 32,768 characters, and take at most 1.5 s of processor time.',
  'adapter-weights': 'An adapter has a file of weights.',
  'adapter-tensor': 'A tensor is a factor of LoRA, or replaces one of the model.',
  'adapter-factors': 'A module has two factors, of the rank that the settings give.',
  'adapter-tied': 'A module that the adapter replaces shares no tensor with another.',
  'adapter-target': 'A module with factors is one that the settings name.',
  'adapter-setting': 'Before a merge, all settings that change the weights are read.',
  'adapter-fits':
    'Before a merge, the model has all tensors that the adapter changes, in their shapes.',
  'adapter-floats': 'A weight that an adapter changes is stored in floats.',
  'adapter-range': 'A merged value lies in the range of the type of its weight.',
} as const;

export const ZIP_RULES = {
  'zip-end': 'An archive ends with its end record, which has no comment.',
  'zip-64-locator': 'A zip64 locator gives the place of the zip64 end record right before it.',
  'zip-64-end': 'A zip64 end record has its signature and no more fields than it must.',
  'zip-64-agrees': 'End record and zip64 end record say the same.',
  'zip-one-disk': 'An archive lies on one disk.',
  'zip-directory-place': 'The directory ends where the first of the end records begins.',
  'zip-directory-size': 'A directory has at most 16 MiB.',
  'zip-directory-entries':
    'A directory has the number of entries of the end record, and nothing else.',
  'zip-entry': 'Each entry of the directory begins with its signature.',
  'zip-extra':
    'The extra fields of an entry fill their space, and at most one of them is for zip64.',
  'zip-64-extra': 'The zip64 field of an entry holds just what the entry leaves out.',
  'zip-name-utf8': 'The name of an entry is valid UTF-8.',
  'zip-name': 'The name of an entry is a plain relative path.',
  'zip-name-once': 'No two entries have the same name, ignoring case.',
  'zip-name-case': 'A record that PyTorch reads has its name in lower case.',
  'zip-root': 'All entries lie in one folder.',
  'zip-attributes': 'An entry has the attributes of a regular file.',
  'zip-method': 'Entries are stored, not compressed.',
  'zip-flags': 'Entries are not encrypted, and no patches.',
  'zip-sizes': 'A stored entry is as large as its content.',
  'zip-entry-disk': 'Entries lie on the disk that the archive lies on.',
  'zip-header-place': 'The header of an entry lies before the directory.',
  'zip-header': 'The header of an entry begins with its signature.',
  'zip-header-agrees': 'The header of an entry has the method and the flags of the directory.',
  'zip-header-name': 'The header of an entry has the name of the directory.',
  'zip-header-sizes':
    'The header of an entry has the sizes of the directory, or zeros before a data descriptor.',
  'zip-data-place': 'The data of an entry end before the directory begins.',
  'zip-overlap': 'No two entries share bytes.',
  'zip-gap':
    'Entries follow each other from byte 0 to the directory, with only data descriptors between them.',
  'zip-content': 'An archive holds something.',
  'zip-torchscript': 'An archive is not a TorchScript module, which is a program.',
  'zip-pickle': 'A PyTorch archive holds data.pkl.',
  'zip-version-record': 'A PyTorch archive says the version of its format.',
  'zip-version': 'The version of the format is a number from 1 to 10.',
  'zip-byteorder': 'A byte order is little or big.',
  'zip-alignment': 'An alignment of storages is a number.',
} as const;

/** Rules for pickles, so that they can be read as data. */
export const PICKLE_RULES = {
  'pickle-size': 'A pickle has at most 64 MiB.',
  'pickle-whole': 'A pickle ends with STOP, and every argument is whole.',
  'pickle-protocol': 'A pickle begins with PROTO and a protocol from 2 to 5.',
  'pickle-frame': 'A frame is no longer than what is left.',
  'pickle-opcode': 'Only the opcodes that data needs are used.',
  'pickle-memory':
    'What the pickles of a checkpoint build takes at most about 90 MB, and in files beyond 16 MB up to 640 MB each.',
  'pickle-stack': 'Every opcode finds its operands on the stack.',
  'pickle-mark': 'Every opcode that needs a mark finds one.',
  'pickle-marks': 'At most 200 marks are open at a time.',
  'pickle-rest': 'STOP leaves exactly one object.',
  'pickle-memo': 'Only memo entries that were set are read.',
  'pickle-memo-index': 'A memo index is below two million.',
  'pickle-text-length': 'A text has at most 1 MiB.',
  'pickle-utf8': 'Text is valid UTF-8.',
  'pickle-integer': 'An integer has at most 16 bytes.',
  'pickle-line': 'A name of a global has at most 1,000 bytes.',
  'pickle-key': 'Keys and members of sets are values that Python can hash.',
  'pickle-integer-key': 'Integers that are keys or members of sets fit in 64 bits.',
  'pickle-list': 'Items are appended to lists.',
  'pickle-dict': 'Entries are set in dicts.',
  'pickle-pairs': 'Keys and values come in pairs.',
  'pickle-set': 'Members are added to sets.',
  'pickle-name': 'Module and name of a global are texts.',
  'pickle-global': 'Only classes and functions of the allow-list are named.',
  'pickle-call': 'Only functions and classes that are allowed to be called are called.',
  'pickle-call-arguments': 'The arguments of a call are a tuple.',
  'pickle-arguments': 'A call has the arguments that its function takes in real files.',
  'pickle-new': 'Only classes that stay opaque are made by NEWOBJ.',
  'pickle-state': 'Only objects that have a state are given one.',
  'pickle-attributes': 'An OrderedDict or another kind of dict has no attributes but _metadata.',
  'pickle-no-storage': 'The pickles around the object of a legacy file name no storages.',
  'pickle-nesting': 'Containers are nested at most 200 deep.',
  'pickle-cycle': 'No container holds itself.',
} as const;

/** Rules for ONNX files, which are messages of Protocol Buffers. */
export const ONNX_RULES = {
  'onnx-size': 'A file has at most 2,147,483,647 bytes, the most that Protocol Buffers read.',
  'onnx-whole': 'Every field ends within the message that holds it.',
  'onnx-field': 'A field has a number from 1 on, and is not a group.',
  'onnx-varint': 'An integer has at most 10 bytes.',
  'onnx-wire-type': 'A field that is read has the wire type of the format.',
  'onnx-fields': 'A file has at most 5,000,000 fields.',
  'onnx-name': 'A name has at most 65,535 bytes, of UTF-8.',
  'onnx-strings': 'Names and texts have at most 64 MiB together.',
  'onnx-graph': 'A model has one graph.',
  'onnx-depth': 'Graphs are nested at most 32 deep.',
  'onnx-operators': 'A model has at most 10,000 different operators.',
  'onnx-values': 'A graph has at most 10,000 inputs and 10,000 outputs.',
  'onnx-nodes': 'A model has at most 500,000 nodes.',
  'onnx-metadata': 'A model has at most 100,000 entries of metadata, operator sets and functions.',
  'onnx-tensors':
    'A model has at most 200,000 tensors, in a file below 16 MB at most 12,000. Each other name of one counts.',
  'onnx-name-twice': 'A graph has each initializer once.',
  'onnx-type': 'The element type of a tensor is one that ONNX defines.',
  'onnx-rank': 'A tensor has at most 64 dimensions.',
  'onnx-elements': 'The sizes of a tensor, zeros left out, multiply to at most 2^53 − 1.',
  'onnx-data-place':
    'The values of a tensor are in one place: raw, in typed fields, or in an external file.',
  'onnx-data-size': 'A tensor has exactly the values that its shape and type need.',
  'onnx-integers': 'A tensor has at most 16,777,216 values as integers of variable length.',
  'onnx-external-path': 'The name of an external file is a path that goes down from the model.',
  'onnx-external-folder': 'An external file that is a link leads to a file in the folder.',
  'onnx-external-number': 'Offset and length of external data are numbers of bytes.',
  'onnx-external-length': 'External data have the bytes that shape and type need.',
  'onnx-external-range': 'A tensor lies in its external file, where that is present.',
  'onnx-external-overlap':
    'Tensors in an external file are the same bytes, one in the other, or disjoint.',
} as const;

/** Rules for the storages and tensors of a PyTorch file. */
export const TENSOR_RULES = {
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
    'The key of a view means one part of one storage, and is not a key of a storage.',
  'tensor-arguments': 'A tensor is rebuilt from a storage, an offset, sizes and strides.',
  'tensor-numbers':
    'Offset, sizes and strides are non-negative integers, with one stride for each size.',
  'tensor-rank': 'A tensor has at most 8 dimensions.',
  'tensor-dtype': 'The element type of a tensor is one that files store.',
  'tensor-flags':
    'A tensor has no flags, such as neg and conj, so that its stored bytes are its values.',
  'tensor-gradient':
    'Whether a tensor requires gradients is False, or True for floats and complex numbers.',
  'tensor-elements': 'The bytes of a tensor can be counted exactly.',
  'tensor-bounds': 'Every element of a tensor lies in its storage.',
  'tensor-amplification': 'A tensor has no more elements than its storage, or than 2^20.',
  'tensor-view': 'A tensor on a view begins at a multiple of the bytes of its elements.',
  'parameter-data': 'A parameter is made of a tensor and the number of arguments that it takes.',
  'parameter-state': 'A parameter has no attributes of its own: its state is empty.',
  'legacy-magic': 'A legacy file begins with the magic number of PyTorch.',
  'legacy-protocol': 'The protocol of a legacy file is 1001.',
  'legacy-system': 'A legacy file says that its values are little-endian.',
  'legacy-typed': 'The storages of a legacy file have an element type.',
  'legacy-keys': 'A legacy file lists exactly the storages that its object uses.',
  'legacy-length': 'Each storage of a legacy file has the length that the object says.',
  'legacy-whole': 'The storages of a legacy file lie in the file.',
  'legacy-end': 'A legacy file ends with its last storage.',
} as const;

/** Rules for the dict with the tensors of a PyTorch file. */
export const STATE_DICT_RULES = {
  'state-dict-missing': 'A file holds a dict of tensors by name.',
  'state-dict-many':
    'Only one dict of a file holds the tensors of the model, unless one is chosen.',
  'state-dict-names':
    'The keys of the tensors in a state dict are texts, and no other key on the way to it is written like its name.',
  'state-dict-key':
    'A key of the dicts that are searched for a state dict has at most 65,536 characters.',
  'state-dict-content':
    'Outside the state dict there are at most 100,000 values, whose names have at most 2^24 characters together.',
  'state-dict-views':
    'The tensors of a state dict, tied ones once, take at most 8 times the bytes of the file, and 64 MiB more.',
  'state-dict-choice': 'The dict that was chosen is there, and holds tensors.',
} as const;

const TORCH_ADVICE = 'copy or download the file again, or save it again with torch.save';

interface RuleSet {
  /** Heading in the documentation. */
  readonly title: string;
  readonly rules: Readonly<Record<string, string>>;
  /** Suggestion for a violation that means wrong bytes. */
  readonly suggestion?: string;
}

/** All sets of rules, by the format or part that they are for. The tests attack every rule of every set. */
export const RULE_SETS = {
  file: { title: 'Any file', rules: FILE_RULES },
  name: { title: 'Names', rules: NAME_RULES },
  safetensors: {
    title: 'Safetensors',
    rules: SAFETENSORS_RULES,
    suggestion: 'download the file again, or save it again with the safetensors library',
  },
  gguf: {
    title: 'GGUF',
    rules: GGUF_RULES,
    suggestion: 'copy or download the file again, or convert the model again',
  },
  imatrix: {
    title: 'Importance matrices',
    rules: IMATRIX_RULES,
    suggestion: 'copy or download the file again, or compute it again with llama-imatrix',
  },
  shard: { title: 'Shards', rules: SHARD_RULES },
  onnx: {
    title: 'ONNX',
    rules: ONNX_RULES,
    suggestion: 'copy or download the file again, or export the model again',
  },
  distributed: {
    title: 'Checkpoints of several processes',
    rules: DISTRIBUTED_RULES,
    suggestion: 'copy the whole folder again, or save the checkpoint again',
  },
  adapter: {
    title: 'LoRA adapters',
    rules: ADAPTER_RULES,
    suggestion: 'copy the folder of the adapter again, or save it again with PEFT',
  },
  zip: { title: 'Zip archives', rules: ZIP_RULES, suggestion: TORCH_ADVICE },
  pickle: { title: 'Pickles', rules: PICKLE_RULES, suggestion: TORCH_ADVICE },
  tensor: { title: 'Tensors of PyTorch files', rules: TENSOR_RULES, suggestion: TORCH_ADVICE },
  'state-dict': { title: 'State dicts of PyTorch files', rules: STATE_DICT_RULES },
} as const satisfies Record<string, RuleSet>;

type RuleSets = typeof RULE_SETS;

export type CheckpointRule = {
  [Name in keyof RuleSets]: keyof RuleSets[Name]['rules'];
}[keyof RuleSets];

/** Texts of all rules. */
export const RULES = Object.fromEntries(
  Object.values<RuleSet>(RULE_SETS).flatMap(({ rules }) => Object.entries(rules)),
) as Readonly<Record<CheckpointRule, string>>;

const suggestionFor = (rule: CheckpointRule): string | undefined =>
  Object.values<RuleSet>(RULE_SETS).find(({ rules }) => rule in rules)?.suggestion;

interface Refusal {
  readonly rule: CheckpointRule;
  /** Place in the file: `tensor embed.weight`, `header byte 312`, `entry archive/data/0`. */
  readonly place?: string | undefined;
  readonly message: string;
  /** By default the one of the format. */
  readonly suggestion?: string | undefined;
}

/**
 * Error for a file that violates a rule.
 * @param file The path as the user wrote it.
 */
export function refusal(file: string, { rule, place, message, suggestion }: Refusal): UserError {
  const advice = suggestion ?? suggestionFor(rule);
  return new UserError('refused-file', `${file} is refused`, {
    problems: [
      {
        severity: 'error',
        file,
        ...(place !== undefined && { path: place }),
        message,
        rule,
        ...(advice !== undefined && { suggestion: advice }),
      },
    ],
  });
}

/** Makes the error for a rule that is violated at a known place. */
export type Refuse = (rule: CheckpointRule, message: string, suggestion?: string) => UserError;

/** Errors at one place of a file. */
export const refuseAt =
  (file: string, place?: string): Refuse =>
  (rule, message, suggestion) =>
    refusal(file, { rule, place, message, suggestion });

/** Name of the rule that an error reports as violated. */
export function ruleOf(error: unknown): string | undefined {
  return error instanceof UserError ? error.problems[0]?.rule : undefined;
}
