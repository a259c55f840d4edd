const { default: Sequencer } = require('@jest/test-sequencer');

/** Runs suites in the order of their names. `integration.ts` gives the longest suite the first name. */
module.exports = class ByName extends Sequencer {
  sort(tests) {
    return tests.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }
};
