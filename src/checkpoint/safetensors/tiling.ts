import type { ByteFile } from '../byte-file.js';
import { refusal } from '../rules.js';
import type { StoredTensor } from '../stored-tensor.js';
import { bytesText, FETCH_AGAIN, SAVE_SAFETENSORS_AGAIN, tensorPlace } from '../wording.js';

/**
 * Checks that the tensors lie one right after the other from the beginning of the data to the end of the
 * file. A tensor without bytes may stand between two others. (Offsets near 2^53 may have been rounded; they are
 * beyond the end of any file, and so refused all the same.)
 * @param dataPosition Where the data begin in the file.
 * @throws UserError when bytes belong to no tensor or to two, or are not there.
 */
export function checkTiling(
  file: ByteFile,
  tensors: ReadonlyMap<string, StoredTensor>,
  dataPosition: number,
): void {
  let end = dataPosition;
  for (const tensor of inFileOrder([...tensors.values()])) {
    const { position, bytes } = tensor.storage;
    if (position !== end) {
      const wrong =
        position > end
          ? `${bytesText(position - end)} before it belong to no tensor`
          : 'it overlaps the one before it';
      throw refusal(file.path, {
        rule: 'st-tiling',
        place: tensorPlace(nameOf(tensor, tensors)),
        message: `begins at offset ${position - dataPosition}, expected ${end - dataPosition}: ${wrong}`,
        suggestion: SAVE_SAFETENSORS_AGAIN,
      });
    }
    end = position + bytes;
  }
  if (end !== file.size) {
    throw refusal(file.path, {
      rule: 'st-data-end',
      place: `byte ${Math.min(end, file.size)}`,
      message:
        end > file.size
          ? `the file ends here, ${bytesText(end - file.size)} before its last tensor does`
          : `the last tensor ends here, but the file goes on for ${bytesText(file.size - end)}`,
      suggestion: FETCH_AGAIN,
    });
  }
}

const byPlace = ({ storage: a }: StoredTensor, { storage: b }: StoredTensor) =>
  a.position - b.position || a.bytes - b.bytes;

/** Sorts in place; most files are in order already, which is quicker to see than to sort. */
function inFileOrder(tensors: StoredTensor[]): StoredTensor[] {
  const isSorted = tensors.every((tensor, index) => {
    const before = tensors[index - 1];
    return before === undefined || byPlace(before, tensor) <= 0;
  });
  return isSorted ? tensors : tensors.sort(byPlace);
}

function nameOf(wanted: StoredTensor, tensors: ReadonlyMap<string, StoredTensor>): string {
  for (const [name, tensor] of tensors) if (tensor === wanted) return name;
  return '';
}
