/** Parts of the page that are compressed: they take a third of their size. */

/** Text of a script element with the base64 of a gzip file. */
export async function unpackedText(id: string): Promise<string> {
  const packed = document.getElementById(id)?.textContent ?? '';
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}
