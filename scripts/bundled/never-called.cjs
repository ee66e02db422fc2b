// In place of packages that bundled packages load, but minimind never calls.
module.exports = {};
