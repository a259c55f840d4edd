// Preloaded by a process under test. Sets its wall clock CLOCK_OFFSET_MS ahead. Does not affect timers.
'use strict';
const offsetMs = Number(process.env.CLOCK_OFFSET_MS);
const RealDate = globalThis.Date;
globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + offsetMs);
    else super(...args);
  }

  static now() {
    return RealDate.now() + offsetMs;
  }
};
