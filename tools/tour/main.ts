/**
 * `npm run tour`: walks through the running platform. Each step shows a request, its response and their
 * meaning; the first unexpected response ends the walk with exit code 1.
 */
import { randomUUID } from 'node:crypto';
import { commandLine, runMain } from '#platform/command-line.ts';
import { openStateFolder, readRunningAddresses, WORKSPACE } from '#platform/state-folder.ts';
import { activationChapter, generationChapter } from './chapters/generation-triggers.chapter.ts';
import { lifecycleChapter } from './chapters/lifecycle.chapter.ts';
import { revocationChapter } from './chapters/revocation.chapter.ts';
import { completionChapter, scheduleChapter } from './chapters/schedule.chapter.ts';
import { settingsChapter } from './chapters/settings.chapter.ts';
import { singleSignOnChapter } from './chapters/single-sign-on.chapter.ts';
import { accessControlChapter, tokensChapter } from './chapters/tokens.chapter.ts';
import { Difference } from './expectations.ts';
import { Narrator, terminalScreen } from './narrator.ts';
import { readTourSettings, Walk } from './walk.ts';

const DESCRIPTION = `Walks through the running platform: each step shows a request, its response and what it means. Ends with 1 at the first
unexpected response. AUTH_URL, SETTINGS_URL, TASK_URL, CUSTOMERS_URL, SCHEDULING_URL, RECEIVER_URL and IDENTITY_PROVIDER_URL name other
addresses.`;

async function tour(walk: Walk): Promise<void> {
  // Fresh names on every run, so that the tour can be walked again on the same data.
  const run = randomUUID().slice(0, 8);
  await readinessChapter(walk);
  const travellers = await tokensChapter(walk);
  await singleSignOnChapter(walk);
  await accessControlChapter(walk, travellers);
  await settingsChapter(walk, travellers, run);
  await activationChapter(walk, travellers);
  const instance = await scheduleChapter(walk, travellers, run);
  await completionChapter(walk, instance);
  await generationChapter(walk, travellers);
  await lifecycleChapter(walk, travellers, instance);
  await revocationChapter(walk, travellers);
}

const SERVICES = [
  ['auth', 'Its database is reachable and migrated.'],
  ['settings', 'Its database is reachable, and it knows which tokens are revoked.'],
  ['task', 'Its database and both buses are reachable, and it knows which tokens are revoked.'],
] as const;

/** Checks that all three services are ready. */
async function readinessChapter(walk: Walk): Promise<void> {
  walk.chapter('Are all services ready?');
  for (const [service, explanation] of SERVICES) {
    const url = `${walk.settings[service]}/health/ready`;
    await walk.step(`The ${service} service says whether it is ready`, { url }, explanation);
  }
}

async function main(): Promise<void> {
  commandLine('npm run tour', '', DESCRIPTION).parse();
  const narrator = new Narrator(terminalScreen());
  const settings = readTourSettings(process.env, readRunningAddresses(openStateFolder(WORKSPACE)));
  const walk = new Walk(narrator, settings);
  const startedAtMs = performance.now();
  try {
    await tour(walk);
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    narrator.difference(error);
    const hint = error.expected === 'a response' ? ' Is the platform running? `npm start` brings it up.' : '';
    narrator.end(false, `Step ${walk.steps} is not as the tour says.${hint}`);
    process.exitCode = 1;
    return;
  }
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  narrator.end(true, `All ${walk.steps} steps went as the tour says, in ${seconds} s.`);
}

// The reader has closed the pipe (`npm run tour | head`).
process.stdout.once('error', () => process.exit(1));
runMain(main);
