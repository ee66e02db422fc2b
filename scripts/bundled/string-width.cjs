// In place of the copies of string-width that bundled packages bring. Its tables of characters and the regular expression
// of all emoji are loaded for the rare text that needs them.
const { ONE_COLUMN_EACH } = require('../../src/base/text/escape.ts');

module.exports = (text) =>
  ONE_COLUMN_EACH.test(text) ? text.length : require('string-width').default(text);
