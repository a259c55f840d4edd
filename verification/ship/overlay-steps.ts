import { setTimeout as delay } from 'node:timers/promises';
import { FriendlyError } from '#platform/errors.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { DEMO_APPLICATION } from '#verification/traffic/context.ts';
import { Callers } from './callers.ts';
import { PRESENT } from './images.ts';
import type { Release } from './namespace.ts';
import { Overlay, readRelease } from './overlay.ts';
import { type Measured, seconds, type Use } from './report.ts';
import { rotateKeys } from './rotation.ts';
import { randomKey } from './servers.ts';
import type { ShipContext, Step } from './steps.ts';

const LOADED_MS = 4_000;
const IDLE_MS = 3_000;

/** What the steps of one overlay hand on to the next. */
interface Play {
  readonly overlay: Overlay;
  readonly release: Release;
  /** Null until the platform is up. */
  callers: Callers | null;
}

/** From an empty namespace to a rolling replacement under load, in production mode. */
export function productionSteps(context: ShipContext): Step[] {
  const play = playOf(context, 'production');
  return [
    { name: 'production: migrations and first installation, twice', run: async () => install(await play()) },
    { name: 'production: two replicas of each service', run: async () => bringUp(await play(), context) },
    { name: 'production: pods are confined', run: async () => inspectPods(await play(), context) },
    { name: 'production: callers complete tasks', run: async () => beginLoad(await play(), context) },
    { name: 'production: rolling replacement under load', run: async () => replace(await play(), context) },
    // Some two minutes.
    ...(context.args.isShort
      ? []
      : [{ name: 'production: rotation of keys under load', run: async () => rotate(await play()) }]),
    { name: 'production: everything acknowledged, once and in order', run: async () => audit(await play()) },
    { name: 'production: ends in order', run: async () => end(await play(), context) },
  ];
}

/** The overlay for one machine, with its development identities. */
export function localSteps(context: ShipContext): Step[] {
  const play = playOf(context, 'local');
  return [
    {
      name: 'local: development identities sign in',
      run: async () => bringUpDevelopment(await play(), context),
    },
    { name: 'local: everything acknowledged, once and in order', run: async () => audit(await play()) },
    { name: 'local: ends in order', run: async () => end(await play(), context) },
  ];
}

async function bringUpDevelopment(play: Play, { compose }: ShipContext): Promise<string> {
  const { overlay, release } = play;
  await overlay.namespace.runJobs(release, 'migration');
  await overlay.namespace.runJobs(release, 'development');
  await overlay.prepare(release, compose);
  await overlay.rollOut(release);
  play.callers = await Callers.begin(overlay, DEMO_APPLICATION);
  return play.callers.during('no change', () => Promise.resolve());
}

/** An overlay that is made when its first step runs. */
function playOf({ engine, servers }: ShipContext, name: string): () => Promise<Play> {
  let play: Promise<Play> | null = null;
  const make = async (): Promise<Play> => ({
    overlay: new Overlay(engine, servers, await servers.stage(`-${name}`, randomKey())),
    release: readRelease(WORKSPACE, name, PRESENT),
    callers: null,
  });
  return () => (play ??= make());
}

/** Every Job of the step `database`, and again, as before each release. */
async function install({ overlay, release }: Play): Promise<string> {
  const first = await overlay.namespace.runJobs(release, 'migration');
  const second = await overlay.namespace.runJobs(release, 'migration');
  const made = (printed: Map<string, string>): boolean =>
    printed.get('auth-service-migrate')?.includes('application platform-services: registered') ?? false;
  if (!made(first) || made(second))
    throw new FriendlyError('The first installation did not register platform-services exactly once.');
  return `${first.size} Jobs; the second time changed nothing`;
}

async function bringUp({ overlay, release }: Play, { compose, measured }: ShipContext): Promise<string> {
  await overlay.prepare(release, compose);
  await overlay.rollOut(release);
  noteReadiness(overlay, measured);
  const idle = await measureUse(overlay, measured, IDLE_MS);
  measured.forEach((one, index) => (one.idle = idle[index] ?? one.idle));
  const slowest = Math.max(...overlay.namespace.allPods.map(({ readyAfterMs }) => readyAfterMs));
  return `${overlay.namespace.allPods.length} pods, ready after ${seconds(slowest)} at most`;
}

/** What a process finds that wants more than it should. */
const ATTEMPT = `
const { readFileSync, writeFileSync } = require('node:fs');
const status = readFileSync('/proc/self/status', 'utf8');
const field = (name) => new RegExp('^' + name + ':\\\\s+(\\\\S+)', 'm').exec(status)[1];
let written = 'written';
try { writeFileSync('/app/main.js', ''); } catch (error) { written = error.code; }
console.log([written, field('CapEff'), field('NoNewPrivs'), field('Seccomp'), process.getuid(), process.constrainedMemory()].join(' '));`;

/** What the manifests promise of a container, seen from within. */
async function inspectPods({ overlay }: Play, { engine }: ShipContext): Promise<string> {
  for (const { name, memoryBytes } of overlay.namespace.allPods) {
    const seen = (await engine.call(['exec', engine.container(name), 'node', '--eval', ATTEMPT])).trim();
    const promised = `EROFS 0000000000000000 1 2 1000 ${memoryBytes}`;
    if (seen !== promised) throw new FriendlyError(`${name} is ${seen}, not ${promised}.`);
  }
  return 'read-only root, no capabilities, no new privileges, seccomp, user 1000, memory limit';
}

async function beginLoad(play: Play, { measured }: ShipContext): Promise<string> {
  const { overlay, release } = play;
  play.callers = await Callers.begin(overlay, await overlay.makeApplication(release));
  return play.callers.during('no change', async () => {
    const loaded = await measureUse(overlay, measured, LOADED_MS);
    measured.forEach((one, index) => (one.loaded = loaded[index] ?? one.loaded));
  });
}

function noteReadiness({ namespace }: Overlay, measured: readonly Measured[]): void {
  for (const { name, readyMs } of measured)
    readyMs.push(...namespace.pods(name).map(({ readyAfterMs }) => readyAfterMs));
}

/** What each service uses during so many milliseconds, in the order of `measured`. */
async function measureUse({ namespace }: Overlay, measured: readonly Measured[], ms: number): Promise<Use[]> {
  const sample = (metric: string): Promise<number[][]> =>
    Promise.all(
      measured.map(({ name }) => Promise.all(namespace.pods(name).map((pod) => pod.metric(metric)))),
    );
  const startedAtMs = performance.now();
  const before = await sample('process_cpu_seconds_total');
  await delay(ms);
  const after = await sample('process_cpu_seconds_total');
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const bytes = await sample('process_resident_memory_bytes');
  return measured.map((_, service) => {
    const used = (after[service] ?? []).map((value, pod) => value - (before[service]?.[pod] ?? 0));
    return { bytes: Math.max(...(bytes[service] ?? [])), processors: Math.max(...used) / seconds };
  });
}

function replace(play: Play, { measured }: ShipContext): Promise<string> {
  const { overlay, release } = play;
  return callersOf(play).during('rolling replacement', async () => {
    await overlay.rollOut(release);
    noteReadiness(overlay, measured);
  });
}

function rotate(play: Play): Promise<string> {
  const { overlay, release } = play;
  const callers = callersOf(play);
  return callers.during('rotation of keys', () => rotateKeys(overlay, release, callers.application));
}

function audit(play: Play): Promise<string> {
  return callersOf(play).audit();
}

async function end(play: Play, { engine }: ShipContext): Promise<string> {
  await play.overlay.close();
  callersOf(play).expectNoSecret(engine.endedLogs);
  return 'exit code 0 of each, no secret in their logs';
}

function callersOf({ callers }: Play): Callers {
  if (callers === null) throw new Error('nobody calls yet');
  return callers;
}
