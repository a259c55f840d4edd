import { inTransaction, isRowFailure, postgresOptions } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { parseSettingName } from '@platform/setting-names';
import { SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { DEFAULT_ISOLATION, ENTITIES, SCHEMA } from '../database-layout';
import { BatchedSettingsRepository } from '../settings/batched-settings.repository';
import { COMPARED, PastSettingsRepository } from '../settings/past-settings.repository';
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

/** How a setting of a file stands to this environment; `extra` is here and not in the file. */
export type Difference = 'missing' | 'different' | 'same' | 'extra';
/** `failed` settings are left as they are. */
export type Summary = Record<Difference | 'failed', number>;

/** Hears how it goes. */
export interface TransferObserver {
  /** A setting that is not the same here. */
  differs(difference: Exclude<Difference, 'same'>, subsystemName: string, settingName: string): void;
  /** A setting that cannot be read or written; the others go on. */
  failed(error: unknown, subsystemName: string, settingName: string): void;
  /** So many settings are done. */
  progressed(done: number): void;
}

/** Whose pages these are: nobody else reads in this process. */
const OPERATOR = 'settings:admin';
const CONNECTIONS = 2;
const PAGE = 1_000;
/** Settings that are compared, and written in one transaction. */
const BATCH = 100;

/** What a part of a restoration did, and what it could not do. */
interface RestoredPart extends ComparedPart {
  readonly failed: readonly (PastName & { readonly error: unknown })[];
}

/** Moves settings between environments: lines out of this one's database, and into it. */
export class TransferService {
  private readonly settings: SettingsRepository;
  private readonly batch: BatchedSettingsRepository;
  private readonly past: PastSettingsRepository;
  private readonly settled: SettledPastService;

  /** @param url of the service's database, with the service's own role */
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
   * The lines of all settings, or of these subsystems', in the order of names; without those that cannot be
   * read.
   */
  async *exportLines(subsystems: readonly string[], observer: TransferObserver): AsyncGenerator<string> {
    let done = 0;
    for await (const setting of this.list(subsystems, observer)) {
      yield lineOf(setting);
      observer.progressed((done += 1));
    }
  }

  /**
   * Compares the file's settings with those here and, unless `trail` is null, writes what is missing or
   * different, a hundred in one transaction. What is the same is left alone, so that an import that was
   * interrupted goes on when it is run again.
   * @param note hears of every setting of the file
   * @throws {SettingLineError} at the first bad line; the hundreds before it are written
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
   * Compares the file's settings with those here, and names those of the subsystems (of the file's, unless
   * given) that the file lacks.
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
   * Makes a subsystem what it was at `at`, part by part, each in one transaction. Run again after an
   * interruption, it goes on. A setting that cannot be read or written is left as it is.
   * @param trail null: only says what would change
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

  /** A part that fails by one of its rows is tried in halves, down to the setting that is to blame. */
  private async *restoreParts(restoration: SubsystemRestoration): AsyncGenerator<RestoredPart> {
    let count = COMPARED;
    for (let after: string | null = START; after !== null;) {
      const part: RestoredPart | null = await this.restorePart(restoration, after, count);
      if (part === null) {
        count = Math.ceil(count / 2);
        continue;
      }
      yield part;
      count = Math.min(2 * count, COMPARED);
      after = part.last;
    }
  }

  /** @returns null when one of several settings fails */
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

  /** What differs from what is here. A setting that cannot be read here is tried by itself and left out. */
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

  /** The settings here, null where there is none, undefined for one that cannot be read. */
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

  /** All settings, or those of the subsystems. */
  private async *list(
    subsystems: readonly string[],
    observer: TransferObserver,
  ): AsyncGenerator<ListedSetting> {
    if (subsystems.length === 0) yield* this.listIn(null, observer);
    const keys = new Set(subsystems.map(keyOf));
    for (const key of [...keys].sort()) yield* this.listIn(key, observer);
  }

  /** A page that fails by one of its rows is read in halves, down to the setting that is to blame. */
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
 * The settings of the lines, a hundred at a time.
 * @throws {SettingLineError} also for a setting that an earlier line has
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
