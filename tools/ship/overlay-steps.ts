import { setTimeout as delay } from 'node:timers/promises';
import { DEMO_BACKEND } from '#platform/callers.ts';
import { FriendlyError } from '#platform/errors.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { PRESENT } from './images.ts';
import { type Application, Load } from './load.ts';
import type { Release } from './namespace.ts';
import { Overlay, readRelease } from './overlay.ts';
import { type Measured, seconds, type Use } from './report.ts';
import { rotateKeys } from './rotation.ts';
import { randomKey } from './servers.ts';
import type { ShipContext, Step } from './steps.ts';

/** Under load means that callers are at it before, during and after. */
const LOADED_MS = 4_000;
const IDLE_MS = 3_000;
/** What the steps of one overlay hand on to the next. */
interface Play {
  readonly overlay: Overlay;
  readonly release: Release;
  application: Application;
}

/** From an empty namespace to a rolling replacement under load, in production mode. */
export function productionSteps(context: ShipContext): Step[] {
  const play = playOf(context, 'production');
  return [
    { name: 'production: migrations and first installation, twice', run: async () => install(await play()) },
    { name: 'production: two replicas of each service', run: async () => bringUp(await play(), context) },
    { name: 'production: pods are confined', run: async () => inspectPods(await play(), context) },
    { name: 'production: a task is completed', run: async () => completeTask(await play(), context) },
    { name: 'production: rolling replacement under load', run: async () => replace(await play(), context) },
    // Some two minutes.
    ...(context.args.isShort
      ? []
      : [{ name: 'production: rotation of keys under load', run: async () => rotate(await play()) }]),
    { name: 'production: ends in order', run: async () => end(await play()) },
  ];
}

/** The overlay for one machine, with its development identities. */
export function localSteps(context: ShipContext): Step[] {
  const play = playOf(context, 'local');
  return [
    {
      name: 'local: development identities sign in',
      run: async () => {
        const { overlay, release } = await play();
        return bringUpDevelopment(overlay, release, context);
      },
    },
    { name: 'local: ends in order', run: async () => end(await play()) },
  ];
}

async function bringUpDevelopment(
  overlay: Overlay,
  release: Release,
  { compose }: ShipContext,
): Promise<string> {
  await overlay.namespace.runJobs(release, 'migration');
  await overlay.namespace.runJobs(release, 'development');
  await overlay.prepare(release, compose);
  await overlay.rollOut(release);
  return use(overlay, IVY);
}

/** Of the development identities in the README. */
const IVY: Application = { ...DEMO_BACKEND, userName: 'ivy.internal' };

/** An overlay that is made when its first step runs. */
function playOf({ engine, servers }: ShipContext, name: string): () => Promise<Play> {
  let play: Promise<Play> | null = null;
  const make = async (): Promise<Play> => ({
    overlay: new Overlay(engine, await servers.stage(`-${name}`, randomKey()), WORKSPACE),
    release: readRelease(WORKSPACE, name, PRESENT),
    application: IVY,
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

async function completeTask(play: Play, { measured }: ShipContext): Promise<string> {
  const { overlay, release } = play;
  play.application = await overlay.makeApplication(release);
  return underLoad(overlay, play.application, async () => {
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

/** Callers for a moment. */
async function use(overlay: Overlay, application: Application): Promise<string> {
  return underLoad(overlay, application, () => Promise.resolve());
}

async function underLoad(
  overlay: Overlay,
  application: Application,
  work: () => Promise<void>,
): Promise<string> {
  const load = new Load(overlay.addresses, application);
  await load.start();
  try {
    await delay(LOADED_MS);
    await work();
    await delay(LOADED_MS);
  } finally {
    await load.end();
  }
  await load.verify();
  return load.summary();
}

function replace({ overlay, release, application }: Play, { measured }: ShipContext): Promise<string> {
  return underLoad(overlay, application, async () => {
    await overlay.rollOut(release);
    noteReadiness(overlay, measured);
  });
}

function rotate({ overlay, release, application }: Play): Promise<string> {
  return underLoad(overlay, application, () => rotateKeys(overlay, release, application));
}

async function end({ overlay }: Play): Promise<string> {
  await overlay.close();
  return 'exit code 0 of each';
}
