import { UserError } from '../../base/errors.js';

/** A model that no family describes. Its weights can still be counted from their headers. */
export class UndescribedModel extends UserError {
  constructor({ code, message, problems, suggestion, cause }: UserError) {
    super(code, message, { problems, suggestion, cause });
  }
}
