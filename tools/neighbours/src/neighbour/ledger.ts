import { mkdir, open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '@platform/time';

/** One line of a ledger. `sequence` counts from 1 without gaps. */
export interface LedgerEntry<T> {
  sequence: number;
  id: string;
  recordedAt: string;
  record: T;
}

interface PendingLine {
  text: string;
  settle(error: Error | null): void;
}

/**
 * An append-only file of JSON lines, one per id, read back when the process starts again.
 *
 * `append` resolves only when the line is on disk, so a message acknowledged afterwards is never missing from
 * the ledger, not even after `kill -9`. Lines that wait together are written and synced together.
 */
export class Ledger<T> {
  private readonly recorded: LedgerEntry<T>[] = [];
  private readonly durable = new Map<string, Promise<void>>();
  private pending: PendingLine[] = [];
  private flushing: Promise<void> | null = null;
  private duplicateCount = 0;
  private failure: Error | null = null;

  private constructor(
    private readonly file: FileHandle,
    private readonly clock: Clock,
  ) {}

  /**
   * Opens or creates the ledger at `path`. Drops a last line that a crash cut short: its append never
   * resolved.
   * @throws {Error} if a complete line is not JSON.
   */
  static async open<T>(path: string, clock: Clock): Promise<Ledger<T>> {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, 'a+');
    const ledger = new Ledger<T>(file, clock);
    try {
      await ledger.readBack(path);
      return ledger;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Number of appends of ids that were already recorded, since this process started. */
  get duplicates(): number {
    return this.duplicateCount;
  }

  get size(): number {
    return this.recorded.length;
  }

  has(id: string): boolean {
    return this.durable.has(id);
  }

  /**
   * Records `record` under `id`; resolves when it is on disk. An id that is already recorded keeps its record
   * and counts as a duplicate.
   * @throws {Error} if this or an earlier line could not be written: nothing is recorded after a gap.
   */
  append(id: string, record: T): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure);
    const known = this.durable.get(id);
    if (known !== undefined) {
      this.duplicateCount += 1;
      return known;
    }
    const entry = {
      sequence: this.recorded.length + 1,
      id,
      recordedAt: this.clock.now().toISOString(),
      record,
    };
    const onDisk = new Promise<void>((resolve, reject) => {
      this.pending.push({
        text: `${JSON.stringify(entry)}\n`,
        settle: (error) => (error === null ? resolve() : reject(error)),
      });
    });
    this.remember(entry, onDisk);
    this.flushing ??= this.flush();
    return onDisk;
  }

  /** Returns at most `limit` entries after sequence `after` whose records match, in order of arrival. */
  entries({
    after = 0,
    limit = Infinity,
    matches = () => true,
  }: {
    after?: number;
    limit?: number;
    matches?: (record: T) => boolean;
  } = {}): LedgerEntry<T>[] {
    const found: LedgerEntry<T>[] = [];
    for (let index = after; index < this.recorded.length && found.length < limit; index += 1) {
      const entry = this.recorded[index];
      if (entry !== undefined && matches(entry.record)) found.push(entry);
    }
    return found;
  }

  /** Writes the pending lines and closes the file. */
  async close(): Promise<void> {
    await this.flushing;
    await this.file.close();
  }

  private async readBack(path: string): Promise<void> {
    const bytes = await readFile(path);
    const completeLength = bytes.lastIndexOf('\n') + 1;
    if (completeLength < bytes.length) await this.file.truncate(completeLength);
    for (const line of bytes.subarray(0, completeLength).toString('utf8').split('\n').slice(0, -1)) {
      this.remember(JSON.parse(line) as LedgerEntry<T>, Promise.resolve());
    }
  }

  private remember(entry: LedgerEntry<T>, onDisk: Promise<void>): void {
    this.recorded.push(entry);
    this.durable.set(entry.id, onDisk);
  }

  private async flush(): Promise<void> {
    while (this.pending.length > 0) {
      const batch = this.pending;
      this.pending = [];
      this.failure ??= await this.write(batch.map((line) => line.text).join(''));
      for (const line of batch) line.settle(this.failure);
    }
    this.flushing = null;
  }

  private async write(text: string): Promise<Error | null> {
    try {
      await this.file.appendFile(text);
      await this.file.datasync();
      return null;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}
