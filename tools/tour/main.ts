/**
 * A narrated walk through the running platform: each step shows a request, its answer and what it means, and the walk ends with
 * exit code 1 at the first answer that is not as it says.
 *
 * Usage: npm run tour    (AUTH_URL, SETTINGS_URL, TASK_URL, CUSTOMERS_URL, SCHEDULING_URL, RECEIVER_URL, IDENTITY_PROVIDER_URL name other
 *   addresses)
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openStateFolder, readRunningAddresses } from '#platform/state-folder.ts';
import { readTourSettings, type TourSettings } from './addresses.ts';
import { accessControlChapter } from './chapters/access-control.chapter.ts';
import { activationChapter } from './chapters/activation.chapter.ts';
import { completionChapter } from './chapters/completion.chapter.ts';
import { generationChapter } from './chapters/generation.chapter.ts';
import { readinessChapter } from './chapters/readiness.chapter.ts';
import { revocationChapter } from './chapters/revocation.chapter.ts';
import { scheduleChapter } from './chapters/schedule.chapter.ts';
import { settingsChapter } from './chapters/settings.chapter.ts';
import { singleSignOnChapter } from './chapters/single-sign-on.chapter.ts';
import { tokensChapter } from './chapters/tokens.chapter.ts';
import { Difference } from './difference.ts';
import { Narrator, terminalScreen } from './narrator.ts';
import { Walk } from './walk.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

async function tour(walk: Walk, settings: TourSettings): Promise<void> {
  // Fresh names on every run, so that the tour can be walked again on the same data.
  const run = randomUUID().slice(0, 8);
  await readinessChapter(walk, settings);
  const travellers = await tokensChapter(walk, settings);
  await singleSignOnChapter(walk, settings);
  await accessControlChapter(walk, settings, travellers);
  await settingsChapter(walk, settings, travellers, run);
  await activationChapter(walk, settings, travellers);
  const instance = await scheduleChapter(walk, settings, travellers, run);
  await completionChapter(walk, settings, instance);
  await generationChapter(walk, settings, travellers);
  await revocationChapter(walk, settings, travellers);
}

async function main(): Promise<number> {
  const narrator = new Narrator(terminalScreen());
  const walk = new Walk(narrator);
  const startedAtMs = performance.now();
  try {
    await tour(walk, readTourSettings(process.env, readRunningAddresses(openStateFolder(WORKSPACE))));
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    narrator.difference(error);
    const hint = error.expected === 'an answer' ? ' Is the platform running? `npm start` brings it up.' : '';
    narrator.end(false, `Step ${walk.steps} is not as the tour says.${hint}`);
    return 1;
  }
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  narrator.end(true, `All ${walk.steps} steps went as the tour says, in ${seconds} s.`);
  return 0;
}

// Whoever read us has seen enough (`npm run tour | head`).
process.stdout.once('error', () => process.exit(1));
process.exitCode = await main();
