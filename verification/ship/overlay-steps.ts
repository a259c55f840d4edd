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

/** The state that the steps of one overlay share. */
interface OverlayRun {
  readonly overlay: Overlay;
  readonly release: Release;
  /** Null until the platform is ready. */
  callers: Callers | null;
}

/** The steps of the production overlay: from an empty namespace to a rolling replacement under load. */
export function productionSteps(context: ShipContext): Step[] {
  const overlayRun = overlayRunOf(context, 'production');
  return [
    {
      name: 'production: migrations and first installation, twice',
      run: async () => install(await overlayRun()),
    },
    {
      name: 'production: two replicas of each service',
      run: async () => bringUp(await overlayRun(), context),
    },
    { name: 'production: pods are confined', run: async () => inspectPods(await overlayRun(), context) },
    { name: 'production: callers complete tasks', run: async () => beginLoad(await overlayRun(), context) },
    {
      name: 'production: rolling replacement under load',
      run: async () => replace(await overlayRun(), context),
    },
    // Takes about two minutes.
    ...(context.args.isShort
      ? []
      : [{ name: 'production: rotation of keys under load', run: async () => rotate(await overlayRun()) }]),
    {
      name: 'production: everything acknowledged, once and in order',
      run: async () => audit(await overlayRun()),
    },
    { name: 'production: ends in order', run: async () => end(await overlayRun(), context) },
  ];
}

/** The steps of the overlay for one machine, with its development identities. */
export function localSteps(context: ShipContext): Step[] {
  const overlayRun = overlayRunOf(context, 'local');
  return [
    {
      name: 'local: development identities sign in',
      run: async () => bringUpDevelopment(await overlayRun(), context),
    },
    { name: 'local: everything acknowledged, once and in order', run: async () => audit(await overlayRun()) },
    { name: 'local: ends in order', run: async () => end(await overlayRun(), context) },
  ];
}

async function bringUpDevelopment(overlayRun: OverlayRun, { compose }: ShipContext): Promise<string> {
  const { overlay, release } = overlayRun;
  await overlay.namespace.runJobs(release, 'migration');
  await overlay.namespace.runJobs(release, 'development');
  await overlay.prepare(release, compose);
  await overlay.rollOut(release);
  overlayRun.callers = await Callers.begin(overlay, DEMO_APPLICATION);
  return overlayRun.callers.during('no change', () => Promise.resolve());
}

/** Returns a function that creates the overlay at the first call, and returns the same one later. */
function overlayRunOf({ engine, servers }: ShipContext, name: string): () => Promise<OverlayRun> {
  let overlayRun: Promise<OverlayRun> | null = null;
  const make = async (): Promise<OverlayRun> => ({
    overlay: new Overlay(engine, servers, await servers.stage(`-${name}`, randomKey())),
    release: readRelease(WORKSPACE, name, PRESENT),
    callers: null,
  });
  return () => (overlayRun ??= make());
}

/** Runs the migration Jobs twice, because they also run before each later release. */
async function install({ overlay, release }: OverlayRun): Promise<string> {
  const first = await overlay.namespace.runJobs(release, 'migration');
  const second = await overlay.namespace.runJobs(release, 'migration');
  const isRegistered = (printed: Map<string, string>): boolean =>
    printed.get('auth-service-migrate')?.includes('application platform-services: registered') ?? false;
  if (!isRegistered(first) || isRegistered(second))
    throw new FriendlyError('The first installation did not register platform-services exactly once.');
  return `${first.size} Jobs; the second time changed nothing`;
}

async function bringUp(
  { overlay, release }: OverlayRun,
  { compose, measured }: ShipContext,
): Promise<string> {
  await overlay.prepare(release, compose);
  await overlay.rollOut(release);
  noteReadiness(overlay, measured);
  const idle = await measureUse(overlay, measured, IDLE_MS);
  measured.forEach((one, index) => (one.idle = idle[index] ?? one.idle));
  const slowest = Math.max(...overlay.namespace.allPods.map(({ readyAfterMs }) => readyAfterMs));
  return `${overlay.namespace.allPods.length} pods, ready after at most ${seconds(slowest)}`;
}

/** A program that attempts to write, and prints its privileges and limits. */
const ATTEMPT = `
const { readFileSync, writeFileSync } = require('node:fs');
const status = readFileSync('/proc/self/status', 'utf8');
const field = (name) => new RegExp('^' + name + ':\\\\s+(\\\\S+)', 'm').exec(status)[1];
let written = 'written';
try { writeFileSync('/app/main.js', ''); } catch (error) { written = error.code; }
console.log([written, field('CapEff'), field('NoNewPrivs'), field('Seccomp'), process.getuid(), process.constrainedMemory()].join(' '));`;

/** Checks from inside each container that it is confined as its manifest prescribes. */
async function inspectPods({ overlay }: OverlayRun, { engine }: ShipContext): Promise<string> {
  for (const { name, memoryBytes } of overlay.namespace.allPods) {
    const found = (await engine.call(['exec', engine.container(name), 'node', '--eval', ATTEMPT])).trim();
    const expected = `EROFS 0000000000000000 1 2 1000 ${memoryBytes}`;
    if (found !== expected) throw new FriendlyError(`${name} reports ${found}, not ${expected}.`);
  }
  return 'read-only root, no capabilities, no new privileges, seccomp, user 1000, memory limit';
}

async function beginLoad(overlayRun: OverlayRun, { measured }: ShipContext): Promise<string> {
  const { overlay, release } = overlayRun;
  overlayRun.callers = await Callers.begin(overlay, await overlay.makeApplication(release));
  return overlayRun.callers.during('no change', async () => {
    const loaded = await measureUse(overlay, measured, LOADED_MS);
    measured.forEach((one, index) => (one.loaded = loaded[index] ?? one.loaded));
  });
}

function noteReadiness({ namespace }: Overlay, measured: readonly Measured[]): void {
  for (const { name, readyMs } of measured)
    readyMs.push(...namespace.pods(name).map(({ readyAfterMs }) => readyAfterMs));
}

/** Measures the memory and processor use of each service during `ms`, in the order of `measured`. */
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

function replace(overlayRun: OverlayRun, { measured }: ShipContext): Promise<string> {
  const { overlay, release } = overlayRun;
  return callersOf(overlayRun).during('rolling replacement', async () => {
    await overlay.rollOut(release);
    noteReadiness(overlay, measured);
  });
}

function rotate(overlayRun: OverlayRun): Promise<string> {
  const { overlay, release } = overlayRun;
  const callers = callersOf(overlayRun);
  return callers.during('rotation of keys', () => rotateKeys(overlay, release, callers.application));
}

function audit(overlayRun: OverlayRun): Promise<string> {
  return callersOf(overlayRun).audit();
}

async function end(overlayRun: OverlayRun, { engine }: ShipContext): Promise<string> {
  await overlayRun.overlay.close();
  callersOf(overlayRun).expectNoSecret(engine.endedLogs);
  return 'all exit with code 0, no secret in their logs';
}

function callersOf({ callers }: OverlayRun): Callers {
  if (callers === null) throw new Error('the callers have not started');
  return callers;
}
