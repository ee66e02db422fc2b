/** What helps with nearly everything that can be wrong with a file of torch.save. */
export const SAVE_AGAIN = 'copy or download the file again, or save it again with torch.save';
