import { UserError } from '../errors.js';

/** The device went away while it was used: nothing runs on it any more, and what is asked next cannot either. */
export class DeviceLostError extends UserError {}
