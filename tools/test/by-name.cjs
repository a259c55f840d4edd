const { default: Sequencer } = require('@jest/test-sequencer');

/** Runs suites in the order of their names: the longest first. */
module.exports = class ByName extends Sequencer {
  sort(tests) {
    return tests.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }
};
