import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { auditRun } from '#chaos/audit/audit.ts';
import { type Check, CheckBuilder } from '#chaos/audit/check.ts';
import { gatherFacts, watchApplications } from '#chaos/audit/gather.ts';
import { auditLoggedDefects, auditTraffic } from '#chaos/audit/replicas.ts';
import type { BusinessUnitChange, Journal } from '#chaos/load/journal.ts';
import { Load } from '#chaos/load/load.ts';
import { plantTriggers } from '#chaos/load/tasks.ts';
import * as copies from '#chaos/published-messages.ts';
import { drain } from '#chaos/run.ts';
import { makeAccessToken } from '#platform/callers.ts';
import { serviceEnvironment } from '#platform/environments.ts';
import { serviceOf } from '#platform/programs.ts';
import { makeOwnedFolder, type RunAs } from '#platform/run-as.ts';
import { type Variables, WORKSPACE } from '#platform/state-folder.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { adjustFacts, type Difference, joinJournals, journalAt } from './restored.ts';

const WARM_UP_MS = 3_000;
const LOAD_MS = 5_000;
/** How long the scheduling service stands still before the instant, so that events are on their way then. */
const STANDSTILL_MS = 1_000;
/** The instant is rounded to ms; what is committed within so many ms after it may be there or not. */
const MARGIN_MS = 50;
const TRIGGERS = 12;
const RECOVERY_LIMIT_MS = 120_000;
const WAITING_FOR_ARCHIVE = `SELECT count(*)::int AS rows FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`;
const REVISION_ADVANCED = 'SELECT last_value > 1000000 AS advanced FROM settings.setting_revision';
const RECOVERING = 'SELECT count(*)::int AS rows WHERE pg_is_in_recovery()';

export type DrillResult = Awaited<ReturnType<Drill['run']>>;

/** What was known at the instant and when the load had ended. */
interface Past {
  /** As PostgreSQL reads it. */
  readonly instant: string;
  /** The instant by the journals' clock. */
  readonly instantMs: number;
  readonly then: Journal;
  readonly load: Load;
  readonly published: readonly copies.PublishedMessage[];
  /** Of a watcher of settings when the load had ended. */
  readonly position: string;
}

/** Backs a platform up under load, destroys its database and its broker's content, restores it to an instant and audits it. */
export class Drill {
  readonly #servers: PrivateServers;
  readonly #platform: TestPlatform;
  readonly #report: (line: string) => void;
  readonly #commands = documentedCommands();
  readonly #variables: Readonly<Record<'ADMIN_URL' | 'PGDATA' | 'ARCHIVE' | 'BACKUP', string>>;

  private constructor(servers: PrivateServers, platform: TestPlatform, report: (line: string) => void) {
    [this.#servers, this.#platform, this.#report] = [servers, platform, report];
    const folder = join(servers.place.folder, 'postgresql');
    const [PGDATA, ARCHIVE, BACKUP] = [join(folder, 'data'), join(folder, 'archive'), join(folder, 'backup')];
    this.#variables = { ADMIN_URL: servers.postgresql.url, PGDATA, ARCHIVE, BACKUP };
  }

  /** A platform without any program yet, whose log is archived. */
  static async prepare(servers: PrivateServers, report: (line: string) => void): Promise<Drill> {
    const drill = new Drill(servers, await servers.createPlatform(), report);
    makeOwnedFolder(drill.#variables.ARCHIVE, servers.place.runAs);
    await drill.#shell(drill.#commands.archive);
    await servers.postgresql.stopImmediately();
    await servers.postgresql.start();
    return drill;
  }

  /** @param seed decides what the load does */
  async run(seed: number) {
    const platform = this.#platform;
    await platform.startEverything({ task: { SCHEDULES_PER_FACILITY: '1000000' } });
    await watchApplications(platform, 'business_unit_facilities');
    await copies.copyPublishedMessages(platform);
    const past = await this.#useAndBackUp(seed);
    await this.#destroy();
    await this.#restore(past.instant);
    const checks = [await this.#tryOtherKey()];
    const reconciled = await this.#startAgain(past.published);
    checks.push(await this.#tryOldPosition(past.position));
    const second = await this.#load(seed + 1);
    await delay(LOAD_MS);
    await second.finish();
    await drain(platform);
    const { facts, difference } = adjustFacts(await gatherFacts(platform), past.published);
    const journal = joinJournals(journalAt(past.then, past.load.journal, past.instantMs), second.journal);
    checks.push(...auditRun(journal, facts, false));
    checks.push(...[past.load, second].map(({ traffic }) => auditTraffic(traffic, [])));
    checks.push(auditLoggedDefects(platform.logs()));
    const repaired = difference.schedulesUntaken.filter((id) => reconciled.includes(id)).length;
    checks.push(auditDifference(repaired, difference));
    return { instant: past.instant, checks, difference, repaired };
  }

  async #useAndBackUp(seed: number): Promise<Past> {
    const [platform, report] = [this.#platform, this.#report];
    const load = await this.#load(seed);
    load.startLives();
    await delay(WARM_UP_MS);
    const backedUp = stopwatch();
    await this.#shell(this.#commands.backUp);
    report(`base backup taken under load in ${backedUp()}`);
    await plantTriggers(platform, load.journal, TRIGGERS);
    await delay(LOAD_MS);
    await load.finishLives();
    const scheduling = platform.programAt(platform.url('scheduling'));
    scheduling.signal('SIGSTOP');
    await delay(STANDSTILL_MS);
    const then = structuredClone<Journal>(load.journal);
    const [instantMs, instant] = [performance.now(), timestamp(Date.now() + MARGIN_MS)];
    report(`the instant, ${instant}: ${load.journal.acknowledged} writes acknowledged`);
    await delay(LOAD_MS);
    scheduling.signal('SIGCONT');
    await load.finish();
    report(`the load goes on to ${load.journal.acknowledged} writes`);
    const position = await this.#watchSettings('');
    const published = await copies.readPublishedMessages(platform);
    return { instant, instantMs, then, load, published, position: position.next };
  }

  async #load(seed: number): Promise<Load> {
    const load = await Load.prepare(this.#platform, seed);
    load.start(this.#platform);
    return load;
  }

  async #destroy(): Promise<void> {
    const { postgresql } = this.#servers;
    // The archive has to reach beyond the instant; elsewhere archive_timeout sees to that.
    await postgresql.query('postgres', 'SELECT pg_switch_wal()');
    await this.#untilNone(WAITING_FOR_ARCHIVE);
    await postgresql.crash();
    rmSync(this.#variables.PGDATA, { recursive: true });
    await Promise.all(this.#platform.programs.map((program) => program.stop()));
    for (const bus of [this.#platform.bus('main'), this.#platform.bus('scheduling')]) {
      await bus.deleteVhost();
      await bus.createVhost();
    }
    this.#report('the data folder is gone, the virtual hosts are empty, every program is stopped');
  }

  async #restore(instant: string): Promise<void> {
    const restored = stopwatch();
    await this.#shell(this.#commands.restore, { INSTANT: instant });
    await this.#servers.postgresql.start();
    await this.#untilNone(RECOVERING);
    this.#report(`PostgreSQL is at the instant after ${restored()}`);
    const { owner } = this.#platform.settings.databases.settings;
    await this.#shell(this.#commands.advance, { SETTINGS_DATABASE_URL: owner });
    const CURSOR_HMAC_KEY = randomBytes(32).toString('base64url');
    for (const program of this.#platform.programs) program.setVariables({ CURSOR_HMAC_KEY });
  }

  /** Starts what was running, and does what the page says. Returns what reconciliation wrote. */
  async #startAgain(published: readonly copies.PublishedMessage[]): Promise<string> {
    const platform = this.#platform;
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
        await copies.republishChange(platform, message as unknown as BusinessUnitChange);
    return output;
  }

  /** auth-service must not serve with another key for its secrets, and has to say why. */
  async #tryOtherKey(): Promise<Check> {
    const check = new CheckBuilder('secrets: another key is refused by name');
    const variables = { SECRET_ENCRYPTION_KEY: randomBytes(32).toString('base64url') };
    const program = this.#platform.makeService('auth', { name: 'auth-service-other-key', variables });
    this.#platform.programs.pop();
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
    const revisions = await this.#platform.query<{ advanced: boolean }>('settings', REVISION_ADVANCED);
    if (revisions[0]?.advanced !== true) check.wrong('the sequence of revisions was not advanced');
    return check.done(1, 1);
  }

  async #watchSettings(after: string): Promise<{ status: number; next: string }> {
    const headers = { authorization: `Bearer ${makeAccessToken(this.#platform.settings)}` };
    const query = after === '' ? '' : `?after=${after}`;
    const response = await fetch(`${this.#platform.url('settings')}/platform/v1/changes${query}`, {
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

/** A drill in which nothing was on its way at the instant, or nothing was undone, has shown nothing. */
function auditDifference(repaired: number, { undone, schedulesUntaken }: Difference): Check {
  const check = new CheckBuilder('events on their way at the instant: found by reconciliation');
  if (repaired === 0) check.wrong('no schedule waited for its event');
  if (undone === 0) check.wrong('nothing was done after the instant');
  return check.done(schedulesUntaken.length, repaired);
}

/** As `recovery_target_time` takes it: no T, and no Z, because names of zones are not known yet when it is read. */
function timestamp(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ').replace('Z', '+00');
}

/** Says how long it has been running, e.g. `1.2 s`. */
function stopwatch(): () => string {
  const startedAtMs = performance.now();
  return () => `${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`;
}

const run = promisify(execFile);
const PAGE = join(WORKSPACE, 'docs/operations.md');
const HEADING = '### To an instant';

/** The commands of the page's section, block by block as it has them. @throws {Error} when there are not three blocks */
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
  const env = { PATH: process.env['PATH'], LC_ALL: 'C', ...variables };
  await run('sh', ['-ec', commands], { env, cwd: '/', ...runAs });
}
