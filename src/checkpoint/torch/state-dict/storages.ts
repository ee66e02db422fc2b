import { exactProduct, type StoredDtype } from '../../../base/tensor/dtype.js';
import type { Refuse } from '../../checkpoint-rules.js';
import type { StoredBytes } from '../../stored-tensor.js';
import { globalMeaning } from '../pickle/globals.js';
import type { PickleValue, Storage } from '../pickle/values.js';
import { elementBytes, globalName, isKind, isNatural } from '../pickle/values.js';

/** Bytes of a storage; in a legacy file their position follows after the object. */
export type DeferredBytes = { -readonly [Key in keyof StoredBytes]: StoredBytes[Key] };

/** Devices of PyTorch and of its extensions. */
const LOCATION = /^(cpu|(cuda|mps|hpu|xpu|mtia|xla|npu|mlu|musa|privateuseone)(:[0-9]+)?)$/;

interface StorageId {
  readonly key: string;
  readonly dtype: StoredDtype | undefined;
  readonly length: number;
  readonly bytes: number;
  /** Legacy view: its first element in the storage, and its number of elements. */
  readonly view:
    | { readonly key: string; readonly offset: number; readonly length: number }
    | undefined;
}

/** Storages of one file, by key. */
export class Storages {
  readonly #byKey = new Map<string, Storage>();
  /** The part of a storage for each view key. */
  readonly #views = new Map<string, Storage>();
  readonly #refuse: Refuse;
  readonly #place: (key: string, bytes: number) => DeferredBytes;
  /** Whether persistent ids have a sixth field, for views. */
  readonly #hasViews: boolean;

  /** @param place Returns the location of a storage at its first use. */
  constructor(
    refuse: Refuse,
    place: (key: string, bytes: number) => DeferredBytes,
    hasViews: boolean,
  ) {
    this.#refuse = refuse;
    this.#place = place;
    this.#hasViews = hasViews;
  }

  /** Storages by key, in the order of first use. */
  get all(): ReadonlyMap<string, Storage> {
    return this.#byKey;
  }

  /** Storage of a persistent id: the same object for the same storage, except views. */
  find(id: PickleValue): Storage {
    const { key, dtype, length, bytes, view } = this.#parse(id);
    const known = this.#byKey.get(key);
    if (this.#views.has(key)) throw this.#sharedKey(key);
    // PyTorch treats untyped bytes and U8 as equal.
    if (known && ((known.dtype ?? 'U8') !== (dtype ?? 'U8') || known.length !== length)) {
      throw this.#refuse(
        'storage-agrees',
        `names storage ${key} as ${length} × ${dtype ?? 'bytes'}, and elsewhere as ${known.length} × ${known.dtype ?? 'bytes'}`,
      );
    }
    const storage: Storage =
      known && known.dtype === dtype
        ? known
        : {
            kind: 'storage',
            key,
            dtype,
            start: 0,
            length,
            data: known?.data ?? this.#place(key, bytes),
          };
    if (known === undefined) this.#byKey.set(key, storage);
    return view ? this.#viewed(storage, view) : storage;
  }

  /** PyTorch uses the first view for all later ones with the same key. */
  #viewed(storage: Storage, { key, offset, length }: NonNullable<StorageId['view']>): Storage {
    const view = { ...storage, start: offset, length };
    const first = this.#views.get(key) ?? view;
    const isSame =
      first.key === view.key && first.start === view.start && first.length === view.length;
    if (!isSame || this.#byKey.has(key)) throw this.#sharedKey(key);
    this.#views.set(key, first);
    return view;
  }

  #sharedKey(key: string) {
    return this.#refuse(
      'storage-view-key',
      `uses key ${pickleValueText(key)} for two storages or views, which PyTorch takes for the same`,
    );
  }

  /** Parses `('storage', type, key, location, length)`; legacy files append None or `(key, offset, length)`. */
  #parse(id: PickleValue): StorageId {
    const fields = isKind(id, 'tuple') ? id.items : [];
    const [tag = null, type = null, key = null, location = null, length = null, view = null] =
      fields;
    const meaning = isKind(type, 'global') ? globalMeaning(type) : undefined;
    const expected = this.#hasViews ? [5, 6] : [5];
    if (tag !== 'storage' || meaning?.is !== 'storage' || !expected.includes(fields.length)) {
      throw this.#refuse('storage-id', ...wrongId(fields.length, tag, type));
    }
    const { dtype } = meaning;
    // Views exist only in legacy files.
    if (dtype === undefined && this.#hasViews) {
      throw this.#refuse(
        'legacy-typed',
        `names storage ${pickleValueText(key)} without an element type, as legacy files cannot`,
        'save it again with a current PyTorch',
      );
    }
    const checkedKey = this.#key(key);
    this.#checkLocation(location);
    const { elements, bytes } = this.#length(checkedKey, length, dtype);
    return {
      key: checkedKey,
      dtype,
      length: elements,
      bytes,
      view: this.#view(checkedKey, elements, view),
    };
  }

  #key(key: PickleValue): string {
    // At most 20 digits: legacy keys are 64-bit addresses.
    if (typeof key === 'string' && /^(0|[1-9][0-9]{0,19})$/.test(key)) return key;
    throw this.#refuse(
      'storage-key',
      `names a storage by ${pickleValueText(key)}, which is not a decimal number`,
    );
  }

  /** Any device is valid, except those without values. */
  #checkLocation(location: PickleValue): void {
    if (typeof location === 'string' && LOCATION.test(location)) return;
    if (location === 'meta') {
      throw this.#refuse(
        'storage-device',
        'holds a tensor of the meta device, which has a shape but no values',
        'save the model after its weights were loaded',
      );
    }
    throw this.#refuse(
      'storage-location',
      `gives ${pickleValueText(location)} as a location; expected a device, such as cpu or cuda:0`,
    );
  }

  #length(
    key: string,
    length: PickleValue,
    dtype: StoredDtype | undefined,
  ): { elements: number; bytes: number } {
    const bytes = isNatural(length) ? exactProduct(length, elementBytes(dtype)) : undefined;
    if (!isNatural(length) || bytes === undefined) {
      throw this.#refuse(
        'storage-length',
        `says that storage ${key} has ${pickleValueText(length)} elements`,
      );
    }
    return { elements: length, bytes };
  }

  #view(key: string, elements: number, view: PickleValue): StorageId['view'] {
    if (view === null) return undefined;
    const fields = isKind(view, 'tuple') ? view.items : [];
    const [viewKey, offset, length] = fields;
    const isView =
      fields.length === 3 &&
      typeof viewKey === 'string' &&
      isNatural(offset) &&
      isNatural(length) &&
      offset + length <= elements;
    if (isView) return { key: viewKey, offset, length };
    throw this.#refuse(
      'storage-view',
      `takes elements from ${pickleValueText(offset ?? null)} on, ${pickleValueText(length ?? null)} of them, out of storage ${key} with ${elements}`,
    );
  }
}

/** Message and suggestion for a persistent id that is not a storage. */
function wrongId(
  fields: number,
  tag: PickleValue,
  type: PickleValue,
): [message: string, suggestion?: string] {
  if (tag === 'module') {
    return [
      'holds a whole module, with its source code',
      'load it where its classes are, and save model.state_dict()',
    ];
  }
  const named = isKind(type, 'global') ? `${type.module}.${type.name}` : pickleValueText(type);
  return [
    `should name a storage, but is a persistent id of ${fields} fields that begins with ${pickleValueText(tag)} and ${named}`,
  ];
}

/** Text of an unexpected value. */
export function pickleValueText(value: PickleValue): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 50));
  return isKind(value, 'float') ? `${value.value} (a float)` : globalName(value);
}
