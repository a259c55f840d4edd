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
 * So many schedules are acknowledged while the scheduling service stands still, so that their events are on
 * their way at the instant.
 */
const EVENTS_ON_THEIR_WAY = 20;
/** The instant is rounded to ms; what is committed within so many ms after it may be there or not. */
const MARGIN_MS = 50;
const TRIGGERS = 12;
const RECOVERY_LIMIT_MS = 120_000;
const WAITING_FOR_ARCHIVE = `SELECT count(*)::int AS rows FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`;
const REVISION_ADVANCED = 'SELECT last_value > 1000000 AS advanced FROM settings.setting_revision';
const SENT_TO_TASK = ['IScheduleCreatedEvent', 'ITaskInstanceGenerationRequested'];
const RETURN_LIMIT_MS = 20_000;
const INBOX = 'SELECT message_id AS id FROM task.inbox';
const RECOVERING = 'SELECT count(*)::int AS rows WHERE pg_is_in_recovery()';

/** What was known at the instant and when the load had ended. */
export interface Past {
  /** As PostgreSQL reads it. */
  readonly instant: string;
  /** When the journal was copied, a moment before the instant. */
  readonly thenMs: number;
  readonly then: Journal;
  readonly takenAtInstant: ReadonlySet<string>;
  /** Of a watcher of settings when the load had ended. */
  readonly position: string;
}

/** What was seen on the way, for the audit. */
export interface DrillNotes {
  readonly past: Past;
  readonly before: BeforeDisaster;
  /** The load after the restore. */
  readonly second: Load;
  readonly checks: readonly Check[];
  /** What reconciliation wrote. */
  readonly reconciled: string;
}

/** A platform, and what happens to it: it is backed up under load, loses its database and its broker's
 *  content, and is restored to an
 *  instant. */
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

  /** Servers, and a platform without programs. */
  static async open(report: Report): Promise<Disaster> {
    const servers = await PrivateServers.open({}, report);
    return new Disaster(servers, await servers.createPlatform(), report);
  }

  stop(): Promise<void> {
    return this.#servers.close();
  }

  /** PostgreSQL's log is archived from now on; programs and callers start. */
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
    load.startLives();
    return load;
  }

  /** @param seed decides what the load after the restore does */
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
    await load.finishLives();
    const scheduling = platform.programAt(platform.url('scheduling'));
    const schedules = countAcknowledged(load.journal);
    scheduling.signal('SIGSTOP');
    await eventually(() => {
      const created = countAcknowledged(load.journal) - schedules;
      if (created < EVENTS_ON_THEIR_WAY) throw new Error(`only ${created} schedules were acknowledged`);
    });
    const takenAtInstant = await this.#readInbox();
    const then = structuredClone<Journal>(load.journal);
    const thenMs = performance.now();
    const instant = timestamp(Date.now() + MARGIN_MS);
    report(`the instant, ${instant}: ${load.journal.acknowledged} writes acknowledged`);
    await delay(LOAD_MS);
    scheduling.signal('SIGCONT');
    await load.finish();
    report(`the load goes on to ${load.journal.acknowledged} writes`);
    const position = await this.#watchSettings('');
    return { instant, thenMs, then, takenAtInstant, position: position.next };
  }

  async #load(seed: number): Promise<Load> {
    const load = await Load.prepare(this.platform, seed);
    load.start(this.platform);
    return load;
  }

  async #stopPrograms({ takenAtInstant }: Past): Promise<BeforeDisaster> {
    const platform = this.platform;
    await Promise.all(platform.programs.map((program) => program.stop()));
    const published = await copies.readPublishedMessages(platform);
    const takenAtEnd = await this.#readInbox();
    const inQueues = new Set<string>();
    const expectAll = async (): Promise<void> => {
      for (const id of await messageIdsInQueues(platform)) inQueues.add(id);
      const toTask = published.filter(({ name }) => SENT_TO_TASK.includes(name));
      const missing = toTask.filter(({ messageId: id }) => !takenAtEnd.has(id) && !inQueues.has(id));
      if (missing.length > 0) throw new Error(`${missing.length} messages are nowhere`);
    };
    // The broker takes its time to put back what a consumer had not acknowledged. What never comes is a
    // finding of the audit.
    await eventually(expectAll, { timeoutMs: RETURN_LIMIT_MS }).catch((error: Error) =>
      this.#report(error.message),
    );
    return { takenAtInstant, takenAtEnd, inQueues, published };
  }

  async #readInbox(): Promise<Set<string>> {
    const rows = await this.platform.query<{ id: string }>('task', INBOX);
    return new Set(rows.map(({ id }) => id));
  }

  async #destroy(): Promise<void> {
    const { postgresql } = this.#servers;
    // The archive has to reach beyond the instant; elsewhere archive_timeout sees to that.
    await postgresql.query('postgres', 'SELECT pg_switch_wal()');
    await this.#untilNone(WAITING_FOR_ARCHIVE);
    await postgresql.crash();
    rmSync(this.#variables.PGDATA, { recursive: true });
    for (const bus of [this.platform.bus('main'), this.platform.bus('scheduling')]) {
      await bus.deleteVhost();
      await bus.createVhost();
    }
    this.#report('every program is stopped, the data folder is gone, the virtual hosts are empty');
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

  /** Starts what was running, and does what the page says. Returns what reconciliation wrote. */
  async #startAgain(published: readonly copies.PublishedMessage[]): Promise<string> {
    const platform = this.platform;
    const ready = stopwatch();
    await copies.copyPublishedMessages(platform);
    await Promise.all(platform.programs.map((program) => program.start()));
    this.#report(`every program is ready after ${ready()}`);
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

  /** auth-service must not serve with another key for its secrets, and has to say why. */
  async #tryOtherKey(): Promise<Check> {
    const check = new CheckBuilder('secrets: another key is refused by name');
    const variables = { SECRET_ENCRYPTION_KEY: randomBytes(32).toString('base64url') };
    const program = this.platform.makeService('auth', { name: 'auth-service-other-key', variables });
    this.platform.programs.pop();
    await program.spawn();
    const readiness = await eventually(async () => (await fetch(`${program.url}/health/ready`)).text());
    await program.stop();
    if (!/"signing-keys":"failed"/.test(readiness)) check.wrong(`it said ${readiness}`);
    if (!program.log().includes('cannot be decrypted')) check.wrong('its log does not say why');
    return check.done(1, 1);
  }

  /** Whoever watched settings has seen changes that are undone: they must start over, by themselves. */
  async #tryOldPosition(position: string): Promise<Check> {
    const check = new CheckBuilder('settings: a position of after the instant is refused');
    const { status } = await this.#watchSettings(position);
    if (status !== 400 && status !== 410) check.wrong(`it was answered with ${status}`);
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
 * As `recovery_target_time` takes it: no T, and no Z, because names of zones are not known yet when it is
 * read.
 */
function timestamp(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ').replace('Z', '+00');
}

/** How many schedules were acknowledged. */
function countAcknowledged({ schedules }: Journal): number {
  return schedules.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length;
}

/** Says how long it has been running, e.g. `1.2 s`. */
function stopwatch(): () => string {
  const startedAtMs = performance.now();
  return () => `${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`;
}

const run = promisify(execFile);
const PAGE = join(WORKSPACE, 'docs/operations.md');
const HEADING = '### To an instant';

/**
 * The commands of the page's section, block by block as it has them.
 * @throws {Error} when there are not three blocks
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

/** Runs commands in a shell that ends at the first failure. @throws {Error} with what they wrote */
async function runCommands(commands: string, variables: Variables, runAs: RunAs | null): Promise<void> {
  const path = [findPsql(cacheFolder()), process.env['PATH']].join(':');
  const env = { PATH: path, LC_ALL: 'C', ...variables };
  await run('sh', ['-ec', commands], { env, cwd: '/', ...runAs });
}
