/** Prints what is being done and how long it took, one line each. */
export class Progress {
  readonly #startedAtMs = performance.now();

  /** Runs `work` and says how long it took; `work` may return words to add to the line. */
  async step<T>(
    title: string,
    work: () => Promise<T>,
    describe: (result: T) => string = () => '',
  ): Promise<T> {
    const startedAtMs = performance.now();
    const result = await work();
    const words = describe(result);
    this.line(`✔ ${title}${words ? ` ${words}` : ''} (${seconds(startedAtMs)})`);
    return result;
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Time since the beginning, such as `12.3 s`. */
  total(): string {
    return seconds(this.#startedAtMs);
  }
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}
