import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Variables } from '#platform/state-folder.ts';

const ARCHITECTURES: Readonly<Partial<Record<NodeJS.Architecture, string>>> = {
  x64: 'x86_64',
  arm64: 'aarch64',
};
/** Path of Debian's libfaketime, on this machine and in the private Debian. */
export const FAKETIME = `/usr/lib/${ARCHITECTURES[process.arch] ?? process.arch}-linux-gnu/faketime/libfaketimeMT.so.1`;
/** Maximum delay until a process sees a step. */
const SEEN_AFTER_S = 1;

/**
 * A wall clock for some processes that can be stepped. Needed because namespaces share the machine's clock.
 * The monotonic clock of the processes is unaffected.
 * @param name part of the name of a temporary file, which is also visible in the private Debian
 */
export class StepClock {
  readonly #file: string;

  constructor(name: string) {
    this.#file = join(tmpdir(), `clock-${name}`);
    this.step(0);
  }

  /** Sets the offset from the machine's clock. */
  step(offsetS: number): void {
    writeFileSync(this.#file, `${offsetS < 0 ? '' : '+'}${offsetS}\n`);
  }

  /** The variables that make a process use this clock. */
  get environment(): Variables {
    return {
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: String(SEEN_AFTER_S),
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    };
  }
}
