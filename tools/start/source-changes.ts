import { watch } from 'node:fs';

/** An editor writes several files, or one in several steps: quiet for this long is one change. */
const QUIET_MS = 200;

/** Changes of sources under some folders, tests apart. */
export class SourceChanges {
  #changed = false;
  #tell: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(folders: readonly string[]) {
    for (const folder of folders) {
      watch(folder, { recursive: true, persistent: false }, (_event, file) => {
        if (file?.endsWith('.ts') && !file.endsWith('.spec.ts')) this.#note();
      });
    }
  }

  /** Resolves when something has changed since the last call. */
  async next(): Promise<void> {
    if (!this.#changed) await new Promise<void>((resolve) => (this.#tell = resolve));
    this.#changed = false;
  }

  #note(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#changed = true;
      this.#tell();
    }, QUIET_MS);
  }
}
