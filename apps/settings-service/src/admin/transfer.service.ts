import { inTransaction, isRowFailure, postgresOptions } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { parseSettingName } from '@platform/setting-names';
import { SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { DEFAULT_ISOLATION, ENTITIES, SCHEMA } from '../database-layout';
import { BatchedSettingsRepository } from '../settings/batched-settings.repository';
import { COMPARE_BATCH, PastSettingsRepository } from '../settings/past-settings.repository';
import type { ComparedPart, PastName, SubsystemRestoration } from '../settings/restoration';
import { settingKeyText } from '../settings/setting-key';
import type { SettingKey } from '../settings/setting-key';
import type { CurrentSetting, ListPosition, ListedSetting } from '../settings/setting.entity';
import { START } from '../settings/settings-page';
import type { Page } from '../settings/settings-page';
import { SettingsRepository } from '../settings/settings.repository';
import { SettledPastRepository } from '../settings/settled-past.repository';
import { SettledPastService } from '../settings/settled-past.service';
import type { AuditTrail } from '../settings/write-request';
import { SettingLineError, lineOf, settingOf } from './setting-lines';
import type { MovedSetting } from './setting-lines';

/**
 * Result of comparing a setting of the file with this environment. `missing`: only the file has it. `extra`:
 * only this environment has it.
 */
export type Difference = 'missing' | 'different' | 'same' | 'extra';
/** Number of settings per outcome. `failed` settings are not changed. */
export type Summary = Record<Difference | 'failed', number>;

/** Receives the progress of a transfer. */
export interface TransferObserver {
  /** Called for each setting that differs. */
  differs(difference: Exclude<Difference, 'same'>, subsystemName: string, settingName: string): void;
  /** Called for each setting that cannot be read or written. The transfer continues with the others. */
  failed(error: unknown, subsystemName: string, settingName: string): void;
  /** Called with the number of settings processed so far. */
  progressed(done: number): void;
}

/** The caller that page reads are accounted to. This process has only one. */
const OPERATOR = 'settings:admin';
const CONNECTIONS = 2;
const PAGE = 1_000;
/** Settings that one transaction compares and writes. */
const BATCH = 100;

/** The outcome of one part of a restoration, with the settings that failed. */
interface RestoredPart extends ComparedPart {
  readonly failed: readonly (PastName & { readonly error: unknown })[];
}

/** Exports settings as lines, and imports, compares and restores them. */
export class TransferService {
  private readonly settings: SettingsRepository;
  private readonly batch: BatchedSettingsRepository;
  private readonly past: PastSettingsRepository;
  private readonly settled: SettledPastService;

  /** @param url connects to the service's database with the service's own role */
  static async connect(url: string): Promise<TransferService> {
    const options = postgresOptions({
      url,
      schema: SCHEMA,
      applicationName: 'settings-service-admin',
      entities: ENTITIES,
      migrations: [],
      poolSize: CONNECTIONS,
      defaultIsolation: DEFAULT_ISOLATION,
    });
    return new TransferService(await new DataSource(options).initialize());
  }

  private constructor(private readonly dataSource: DataSource) {
    this.settings = new SettingsRepository(dataSource);
    this.batch = new BatchedSettingsRepository(dataSource);
    this.past = new PastSettingsRepository(dataSource);
    this.settled = new SettledPastService(new SettledPastRepository(dataSource), SYSTEM_CLOCK, new Metrics());
  }

  close(): Promise<void> {
    return this.dataSource.destroy();
  }

  /**
   * Yields the lines of all settings, or of the given subsystems, ordered by name. Settings that cannot be
   * read are skipped and reported to the observer.
   */
  async *exportLines(subsystems: readonly string[], observer: TransferObserver): AsyncGenerator<string> {
    let done = 0;
    for await (const setting of this.list(subsystems, observer)) {
      yield lineOf(setting);
      observer.progressed((done += 1));
    }
  }

  /**
   * Compares the file's settings with those here and writes the missing and different ones, at most 100 per
   * transaction. Unchanged settings are skipped, so an interrupted import can be run again.
   * @param trail null for a dry run
   * @param note called with the key of every setting in the file
   * @throws {SettingLineError} at the first bad line; the batches before it remain written
   */
  async import(
    lines: AsyncIterable<string>,
    trail: AuditTrail | null,
    observer: TransferObserver,
    note: (key: SettingKey) => void = () => undefined,
  ): Promise<Summary> {
    const summary = emptySummary();
    let done = 0;
    for await (const batch of batches(lines)) {
      for (const { key } of batch) note(key);
      const changed = await this.changedOf(batch, summary, observer);
      if (trail !== null && changed.length > 0) {
        const writes = changed.map((setting) => ({ ...setting, trail }));
        await inTransaction(this.dataSource, 'REPEATABLE READ', (manager) =>
          this.batch.writeAll(writes, 0, manager),
        );
      }
      observer.progressed((done += batch.length));
    }
    return summary;
  }

  /**
   * Compares the file's settings with those here, and reports as `extra` the settings that the file lacks.
   * @param subsystems where to look for extra settings; if empty, the subsystems that the file mentions
   */
  async compare(
    lines: AsyncIterable<string>,
    subsystems: readonly string[],
    observer: TransferObserver,
  ): Promise<Summary> {
    const inFile = new Set<string>();
    const named = new Map<string, string>();
    const summary = await this.import(lines, null, observer, (key) => {
      inFile.add(settingKeyText(key));
      named.set(key.subsystem.key, key.subsystem.name);
    });
    const compared = subsystems.length > 0 ? subsystems : [...named.values()];
    if (compared.length === 0) return summary;
    for await (const { subsystemKey, settingKey, subsystemName, settingName } of this.list(
      compared,
      observer,
    )) {
      if (inFile.has(`${subsystemKey}\u0000${settingKey}`)) continue;
      summary.extra += 1;
      observer.differs('extra', subsystemName, settingName);
    }
    return summary;
  }

  /**
   * Restores a subsystem to its state at `at`, one transaction per part. After an interruption it can be run
   * again. A setting that cannot be read or written is not changed.
   * @param trail null for a dry run
   */
  async restore(
    subsystemName: string,
    at: Date,
    trail: AuditTrail | null,
    observer: TransferObserver,
  ): Promise<Summary> {
    const summary = emptySummary();
    let done = 0;
    await this.settled.wait(at);
    for await (const part of this.restoreParts({ subsystemKey: keyOf(subsystemName), at, trail })) {
      for (const { settingName, operation } of part.different) {
        const difference = operation === 'write' ? 'different' : 'extra';
        summary[difference] += 1;
        observer.differs(difference, subsystemName, settingName);
      }
      for (const { settingName, error } of part.failed) {
        summary.failed += 1;
        observer.failed(error, subsystemName, settingName);
      }
      summary.same += part.compared - part.different.length - part.failed.length;
      observer.progressed((done += part.compared));
    }
    return summary;
  }

  /** Whether a subsystem had a setting at `at`. */
  async existedAt(subsystemName: string, at: Date): Promise<boolean> {
    await this.settled.wait(at);
    return this.past.existedAt(keyOf(subsystemName), at);
  }

  /**
   * Restores part by part. If one row makes a part fail, retries with half the size until only the broken
   * setting fails.
   */
  private async *restoreParts(restoration: SubsystemRestoration): AsyncGenerator<RestoredPart> {
    let count = COMPARE_BATCH;
    for (let after: string | null = START; after !== null;) {
      const part: RestoredPart | null = await this.restorePart(restoration, after, count);
      if (part === null) {
        count = Math.ceil(count / 2);
        continue;
      }
      yield part;
      count = Math.min(2 * count, COMPARE_BATCH);
      after = part.last;
    }
  }

  /**
   * Restores the next `count` settings in one transaction.
   * @returns null if a row failed and the part has several settings, so that the caller retries with a
   *   smaller one
   */
  private async restorePart(
    restoration: SubsystemRestoration,
    after: string,
    count: number,
  ): Promise<RestoredPart | null> {
    const { subsystemKey, trail } = restoration;
    try {
      return await inTransaction(this.dataSource, 'REPEATABLE READ', async (manager) => {
        const compared = await this.past.comparePart(manager, restoration, after, count);
        if (trail !== null) await this.past.restoreAll(manager, restoration, trail, compared.different);
        return { ...compared, failed: [] };
      });
    } catch (error) {
      if (!isRowFailure(error)) throw error;
      if (count > 1) return null;
      const name = await this.past.findNextName(subsystemKey, after);
      if (name === null) throw error;
      return { different: [], failed: [{ ...name, error }], compared: 1, last: name.settingKey };
    }
  }

  /**
   * Returns the settings that are missing or different here. A setting that cannot be read here is reported
   * as failed and left out.
   */
  private async changedOf(
    settings: readonly MovedSetting[],
    summary: Summary,
    observer: TransferObserver,
  ): Promise<MovedSetting[]> {
    const here = await this.findHere(settings, summary, observer);
    return settings.filter(({ key, value }, index) => {
      const found = here[index];
      if (found === undefined) return false;
      const difference = found === null ? 'missing' : found.valueText === value ? 'same' : 'different';
      summary[difference] += 1;
      if (difference !== 'same') observer.differs(difference, key.subsystem.name, key.setting.name);
      return difference !== 'same';
    });
  }

  /**
   * Reads the current settings. An item is null if the setting does not exist, undefined if it cannot be
   * read.
   */
  private async findHere(
    settings: readonly MovedSetting[],
    summary: Summary,
    observer: TransferObserver,
  ): Promise<(CurrentSetting | null | undefined)[]> {
    try {
      return await this.batch.findAll(settings.map(({ key }) => key));
    } catch (error) {
      if (!isRowFailure(error)) throw error;
      const [{ key }] = settings as readonly [MovedSetting];
      if (settings.length === 1) {
        summary.failed += 1;
        observer.failed(error, key.subsystem.name, key.setting.name);
        return [undefined];
      }
      const half = Math.ceil(settings.length / 2);
      const first = await this.findHere(settings.slice(0, half), summary, observer);
      return [...first, ...(await this.findHere(settings.slice(half), summary, observer))];
    }
  }

  /** Yields all settings, or those of the given subsystems. */
  private async *list(
    subsystems: readonly string[],
    observer: TransferObserver,
  ): AsyncGenerator<ListedSetting> {
    if (subsystems.length === 0) yield* this.listIn(null, observer);
    const keys = new Set(subsystems.map(keyOf));
    for (const key of [...keys].sort()) yield* this.listIn(key, observer);
  }

  /**
   * Yields settings page by page. If one row makes a page fail, retries with half the size until only the
   * broken setting fails.
   */
  private async *listIn(
    subsystemKey: string | null,
    observer: TransferObserver,
  ): AsyncGenerator<ListedSetting> {
    let size = PAGE;
    for (let after: ListPosition | null = null; ;) {
      try {
        const page: Page<ListedSetting> =
          subsystemKey === null
            ? await this.settings.listAll(OPERATOR, size, after)
            : await this.settings.listSubsystem(OPERATOR, subsystemKey, size, after?.settingKey ?? null);
        yield* page.rows;
        if (page.next === null) return;
        after = page.next;
        size = Math.min(2 * size, PAGE);
      } catch (error) {
        if (!isRowFailure(error)) throw error;
        size = Math.floor(size / 2);
        if (size > 0) continue;
        const unread = await this.settings.findNextNames(subsystemKey, after);
        if (unread === null) throw error;
        observer.failed(error, unread.subsystemName, unread.settingName);
        after = unread;
        size = 1;
      }
    }
  }
}

function emptySummary(): Summary {
  return { missing: 0, different: 0, same: 0, extra: 0, failed: 0 };
}

function keyOf(subsystemName: string): string {
  return parseSettingName(subsystemName)?.key ?? subsystemName;
}

/**
 * Parses the lines into batches of 100 settings.
 * @throws {SettingLineError} also if two lines have the same setting
 */
async function* batches(lines: AsyncIterable<string>): AsyncGenerator<MovedSetting[]> {
  const seen = new Map<string, number>();
  let batch: MovedSetting[] = [];
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === '') continue;
    const setting = settingOf(line, number);
    const text = settingKeyText(setting.key);
    const earlier = seen.get(text);
    if (earlier !== undefined)
      throw new SettingLineError(`line ${String(number)}: names the setting of line ${String(earlier)}`);
    seen.set(text, number);
    batch.push(setting);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
