import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Variables } from '#platform/state-folder.ts';

const ARCHITECTURES: Readonly<Partial<Record<NodeJS.Architecture, string>>> = {
  x64: 'x86_64',
  arm64: 'aarch64',
};
/** Debian's libfaketime, here and in the private Debian. */
export const FAKETIME = `/usr/lib/${ARCHITECTURES[process.arch] ?? process.arch}-linux-gnu/faketime/libfaketimeMT.so.1`;
/** How soon a process sees a step. */
const SEEN_AFTER_S = 1;

/**
 * The wall clock of some processes, which can be stepped: namespaces share the machine's. Their monotonic
 * clock goes on.
 * @param name of a file in the folder of temporary files, which the private Debian sees too
 */
export class StepClock {
  readonly #file: string;

  constructor(name: string) {
    this.#file = join(tmpdir(), `clock-${name}`);
    this.step(0);
  }

  /** Sets it to so many seconds after the machine's. */
  step(offsetS: number): void {
    writeFileSync(this.#file, `${offsetS < 0 ? '' : '+'}${offsetS}\n`);
  }

  /** What makes a process live by it. */
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
