/** What helps when bytes are wrong. */
export const SAVE_AGAIN = 'download the file again, or save it again with the safetensors library';
