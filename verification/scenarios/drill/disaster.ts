import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { makeAccessToken } from '#platform/callers.ts';
import { serviceEnvironment } from '#platform/environments.ts';
import { serviceOf } from '#platform/programs.ts';
import { makeOwnedFolder, type RunAs } from '#platform/run-as.ts';
import { findPsql } from '#platform/postgresql-client.ts';
import { cacheFolder, type Variables, WORKSPACE } from '#platform/state-folder.ts';
import { PrivateServers, type TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { type Check, CheckBuilder } from '#verification/audit/check.ts';
import { watchApplications } from '#verification/audit/gather.ts';
import type { BusinessUnitChange, Journal } from '#verification/traffic/journal.ts';
import { Load } from '#verification/traffic/load.ts';
import * as copies from '#verification/traffic/published-messages.ts';
import { TASK_VARIABLES } from '#verification/traffic/recurrences.ts';
import { messageIdsInQueues } from '#verification/traffic/queues.ts';
import { plantTriggers } from '#verification/traffic/triggers.ts';
import type { Report, Stage } from '../scenario.ts';
import type { BeforeDisaster } from './restored.ts';

const WARM_UP_MS = 3_000;
const LOAD_MS = 5_000;
/**
 * Number of schedules that are created while the scheduling service is stopped, so that their events are in
 * transit at the instant to which the platform is restored.
 */
const EVENTS_IN_TRANSIT = 20;
/**
 * Time in ms from the copy of the journal to the instant of the restore. Writes committed in between may be
 * restored or not.
 */
const MARGIN_MS = 50;
const TRIGGERS = 12;
const RECOVERY_LIMIT_MS = 120_000;
const WAITING_FOR_ARCHIVE = `SELECT count(*)::int AS rows FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`;
const REVISION_ADVANCED = 'SELECT last_value > 1000000 AS advanced FROM settings.setting_revision';
const SENT_TO_TASK = ['IScheduleCreatedEvent', 'ITaskInstanceGenerationRequested'];
const RETURN_LIMIT_MS = 20_000;
const INBOX = 'SELECT message_id AS id FROM task.inbox';
const RECOVERING = 'SELECT count(*)::int AS rows WHERE pg_is_in_recovery()';

/** The state at the instant, and at the end of the load. */
export interface Past {
  /** In PostgreSQL's format for `recovery_target_time`. */
  readonly instant: string;
  /** Time of the copy of the journal, just before the instant, in ms of the journal's clock. */
  readonly journalCopiedAtMs: number;
  readonly journalAtInstant: Journal;
  readonly consumedAtInstant: ReadonlySet<string>;
  /** The cursor of a watcher of settings at the end of the load. */
  readonly position: string;
}

/** Observations during the drill, for the audit. */
export interface DrillNotes {
  readonly past: Past;
  readonly before: BeforeDisaster;
  /** The load after the restore. */
  readonly second: Load;
  readonly checks: readonly Check[];
  /** The output of the reconciliation. */
  readonly reconciled: string;
}

/**
 * A platform that is backed up under load, loses its database and the broker's contents, and is restored to
 * an instant.
 */
export class Disaster implements Stage {
  readonly platform: TestPlatform;
  readonly #servers: PrivateServers;
  readonly #report: Report;
  readonly #commands = documentedCommands();
  readonly #variables: Readonly<Record<'ADMIN_URL' | 'PGDATA' | 'ARCHIVE' | 'BACKUP', string>>;

  private constructor(servers: PrivateServers, platform: TestPlatform, report: Report) {
    [this.#servers, this.platform, this.#report] = [servers, platform, report];
    const folder = join(servers.place.folder, 'postgresql');
    const [PGDATA, ARCHIVE, BACKUP] = [join(folder, 'data'), join(folder, 'archive'), join(folder, 'backup')];
    this.#variables = { ADMIN_URL: servers.postgresql.url, PGDATA, ARCHIVE, BACKUP };
  }

  /** Starts the servers and creates a platform. Its programs start later. */
  static async open(report: Report): Promise<Disaster> {
    const servers = await PrivateServers.open({}, report);
    return new Disaster(servers, await servers.createPlatform(), report);
  }

  stop(): Promise<void> {
    return this.#servers.close();
  }

  /** Enables the archiving of PostgreSQL's write-ahead log, then starts programs and callers. */
  async start(seed: number): Promise<Load> {
    const { postgresql, place } = this.#servers;
    makeOwnedFolder(this.#variables.ARCHIVE, place.runAs);
    await this.#shell(this.#commands.archive);
    await postgresql.stopImmediately();
    await postgresql.start();
    await this.platform.startEverything({ task: TASK_VARIABLES });
    await watchApplications(this.platform, 'business_unit_facilities');
    await copies.copyPublishedMessages(this.platform);
    const load = await this.#load(seed);
    load.startScheduleChanges();
    return load;
  }

  /** Backs up, destroys, restores and restarts the platform. @param seed of the load after the restore */
  async happen(load: Load, seed: number): Promise<DrillNotes> {
    const past = await this.#useAndBackUp(load);
    const before = await this.#stopPrograms(past);
    await this.#destroy();
    await this.#restore(past.instant);
    const otherKey = await this.#tryOtherKey();
    const reconciled = await this.#startAgain(before.published);
    const checks = [otherKey, await this.#tryOldPosition(past.position)];
    const second = await this.#load(seed);
    await delay(LOAD_MS);
    return { past, before, second, checks, reconciled };
  }

  async #useAndBackUp(load: Load): Promise<Past> {
    const [platform, report] = [this.platform, this.#report];
    await delay(WARM_UP_MS);
    const backedUp = stopwatch();
    await this.#shell(this.#commands.backUp);
    report(`base backup taken under load in ${backedUp()}`);
    await plantTriggers(platform, load.journal, load.zones, TRIGGERS);
    await delay(LOAD_MS);
    await load.finishScheduleChanges();
    const scheduling = platform.programAt(platform.url('scheduling'));
    const schedules = countAcknowledged(load.journal);
    scheduling.signal('SIGSTOP');
    await eventually(() => {
      const created = countAcknowledged(load.journal) - schedules;
      if (created < EVENTS_IN_TRANSIT) throw new Error(`only ${created} schedules were acknowledged`);
    });
    const consumedAtInstant = await this.#readInbox();
    const journalAtInstant = structuredClone<Journal>(load.journal);
    const journalCopiedAtMs = performance.now();
    const instant = timestamp(Date.now() + MARGIN_MS);
    report(`the instant, ${instant}: ${load.journal.acknowledged} writes acknowledged`);
    await delay(LOAD_MS);
    scheduling.signal('SIGCONT');
    await load.finish();
    report(`the load went on to ${load.journal.acknowledged} writes`);
    const position = await this.#watchSettings('');
    return { instant, journalCopiedAtMs, journalAtInstant, consumedAtInstant, position: position.next };
  }

  async #load(seed: number): Promise<Load> {
    const load = await Load.prepare(this.platform, seed);
    load.start(this.platform);
    return load;
  }

  async #stopPrograms({ consumedAtInstant }: Past): Promise<BeforeDisaster> {
    const platform = this.platform;
    await Promise.all(platform.programs.map((program) => program.stop()));
    const published = await copies.readPublishedMessages(platform);
    const consumedAtEnd = await this.#readInbox();
    const inQueues = new Set<string>();
    const expectAll = async (): Promise<void> => {
      for (const id of await messageIdsInQueues(platform)) inQueues.add(id);
      const toTask = published.filter(({ name }) => SENT_TO_TASK.includes(name));
      const missing = toTask.filter(({ messageId: id }) => !consumedAtEnd.has(id) && !inQueues.has(id));
      if (missing.length > 0)
        throw new Error(`${missing.length} messages are neither consumed nor in a queue`);
    };
    // The broker may need some time to requeue unacknowledged deliveries. The audit reports those that stay
    // missing.
    await eventually(expectAll, { timeoutMs: RETURN_LIMIT_MS }).catch((error: Error) =>
      this.#report(error.message),
    );
    return { consumedAtInstant, consumedAtEnd, inQueues, published };
  }

  async #readInbox(): Promise<Set<string>> {
    const rows = await this.platform.query<{ id: string }>('task', INBOX);
    return new Set(rows.map(({ id }) => id));
  }

  async #destroy(): Promise<void> {
    const { postgresql } = this.#servers;
    // The archive must reach beyond the instant. In production archive_timeout ensures that.
    await postgresql.query('postgres', 'SELECT pg_switch_wal()');
    await this.#untilNone(WAITING_FOR_ARCHIVE);
    await postgresql.crash();
    rmSync(this.#variables.PGDATA, { recursive: true });
    for (const bus of [this.platform.bus('main'), this.platform.bus('scheduling')]) {
      await bus.deleteVhost();
      await bus.createVhost();
    }
    this.#report('all programs are stopped, the data folder is deleted, the virtual hosts are empty');
  }

  async #restore(instant: string): Promise<void> {
    const restored = stopwatch();
    await this.#shell(this.#commands.restore, { INSTANT: instant });
    await this.#servers.postgresql.start();
    await this.#untilNone(RECOVERING);
    this.#report(`PostgreSQL is at the instant after ${restored()}`);
    const { owner } = this.platform.settings.databases.settings;
    await this.#shell(this.#commands.advance, { SETTINGS_DATABASE_URL: owner });
    const CURSOR_HMAC_KEY = randomBytes(32).toString('base64url');
    for (const program of this.platform.programs) program.setVariables({ CURSOR_HMAC_KEY });
  }

  /**
   * Restarts all programs, runs the reconciliation and republishes business-unit changes, as
   * docs/operations.md prescribes. Returns the output of the reconciliation.
   */
  async #startAgain(published: readonly copies.PublishedMessage[]): Promise<string> {
    const platform = this.platform;
    const ready = stopwatch();
    await copies.copyPublishedMessages(platform);
    await Promise.all(platform.programs.map((program) => program.start()));
    this.#report(`all programs are ready after ${ready()}`);
    const { output, exitCode } = await platform.runToEnd(
      'reconcile',
      ['dist/apps/task-service/admin.js', 'reconcile', '--apply'],
      serviceEnvironment(serviceOf('task'), platform.settings),
    );
    if (exitCode !== 0) throw new Error(`reconcile ended with ${exitCode}: ${output}`);
    this.#report(`reconciliation: ${output.trim().split('\n').at(-1) ?? ''}`);
    for (const { name, message } of published)
      if (name === 'IBusinessUnitChangeV1')
        await copies.publishChange(platform, message as unknown as BusinessUnitChange);
    return output;
  }

  /** auth-service must not become ready with a different SECRET_ENCRYPTION_KEY, and must log the reason. */
  async #tryOtherKey(): Promise<Check> {
    const check = new CheckBuilder('secrets: a different key is refused, with the reason');
    const variables = { SECRET_ENCRYPTION_KEY: randomBytes(32).toString('base64url') };
    const program = this.platform.makeService('auth', { name: 'auth-service-other-key', variables });
    this.platform.programs.pop();
    await program.spawn();
    const readiness = await eventually(async () => (await fetch(`${program.url}/health/ready`)).text());
    await program.stop();
    if (!/"signing-keys":"failed"/.test(readiness)) check.wrong(`the readiness was ${readiness}`);
    if (!program.log().includes('cannot be decrypted')) check.wrong('the log does not contain the reason');
    return check.done(1, 1);
  }

  /**
   * A watcher of settings has seen changes that are now undone. Its old cursor must be refused, so it starts
   * over.
   */
  async #tryOldPosition(position: string): Promise<Check> {
    const check = new CheckBuilder('settings: a cursor from after the instant is refused');
    const { status } = await this.#watchSettings(position);
    if (status !== 400 && status !== 410) check.wrong(`the response was ${status}`);
    const revisions = await this.platform.query<{ advanced: boolean }>('settings', REVISION_ADVANCED);
    if (revisions[0]?.advanced !== true) check.wrong('the sequence of revisions was not advanced');
    return check.done(1, 1);
  }

  async #watchSettings(after: string): Promise<{ status: number; next: string }> {
    const headers = { authorization: `Bearer ${makeAccessToken(this.platform.settings)}` };
    const query = after === '' ? '' : `?after=${after}`;
    const response = await fetch(`${this.platform.url('settings')}/platform/v1/changes${query}`, {
      headers,
    });
    const { next = '' } = (await response.json()) as { next?: string };
    return { status: response.status, next };
  }

  #shell(commands: string, more: Variables = {}): Promise<void> {
    return runCommands(commands, { ...this.#variables, ...more }, this.#servers.place.runAs);
  }

  async #untilNone(sql: string): Promise<void> {
    const expectNone = async (): Promise<void> => {
      const [row] = await this.#servers.postgresql.query<{ rows: number }>('postgres', sql);
      if (row?.rows !== 0) throw new Error(`still waiting: ${sql}`);
    };
    await eventually(expectNone, { timeoutMs: RECOVERY_LIMIT_MS });
  }
}

/**
 * Formats an instant for `recovery_target_time`: without T, and with +00 instead of Z, because PostgreSQL
 * does not yet know time-zone abbreviations when it reads the setting.
 */
function timestamp(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ').replace('Z', '+00');
}

/** Counts the acknowledged schedules. */
function countAcknowledged({ schedules }: Journal): number {
  return schedules.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length;
}

/** Returns a function that returns the time since this call, e.g. `1.2 s`. */
function stopwatch(): () => string {
  const startedAtMs = performance.now();
  return () => `${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`;
}

const run = promisify(execFile);
const PAGE = join(WORKSPACE, 'docs/operations.md');
const HEADING = '### To an instant';

/**
 * Reads the four blocks of commands from the section in docs/operations.md.
 * @throws {Error} if the section does not have exactly four blocks
 */
function documentedCommands(): Record<'archive' | 'backUp' | 'restore' | 'advance', string> {
  const [section = ''] = (readFileSync(PAGE, 'utf8').split(`\n${HEADING}\n`)[1] ?? '').split(/\n##+ /);
  const blocks = [...section.matchAll(/^```sh\n(.+?)^```$/gms)].map(([, commands = '']) => commands);
  const [archive, backUp, restore, advance] = blocks;
  if (
    archive === undefined ||
    backUp === undefined ||
    restore === undefined ||
    advance === undefined ||
    blocks.length > 4
  )
    throw new Error(`${PAGE} has ${blocks.length} blocks of commands under "${HEADING}", not four`);
  return { archive, backUp, restore, advance };
}

/**
 * Runs commands in a shell that exits at the first failure.
 * @throws {Error} with the output of the commands
 */
async function runCommands(commands: string, variables: Variables, runAs: RunAs | null): Promise<void> {
  const path = [findPsql(cacheFolder()), process.env['PATH']].join(':');
  const env = { PATH: path, LC_ALL: 'C', ...variables };
  await run('sh', ['-ec', commands], { env, cwd: '/', ...runAs });
}
